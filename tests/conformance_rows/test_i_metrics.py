"""Rows I: evaluation, metrics, bookkeeping, seeds."""

import itertools
import re

import pytest
import torch

from dapo_lib.metrics import (
    Ratio,
    avg_at_k,
    clip_diagnostics,
    entropy,
    maj_at_k,
    merge,
    pass_at_k,
)
from dapo_lib.rollout import Rollout
from dapo_lib.train import Schedule, accumulate


@pytest.mark.parametrize(
    ("n", "c", "k", "value"),
    [(4, 1, 2, 0.5), (32, 1, 32, 1.0), (10, 3, 5, 0.9167), (5, 0, 5, 0.0)],
)
def test_I01_I02_pass_at_k_is_the_closed_form(n, c, k, value):
    assert pass_at_k(n, c, k) == pytest.approx(value, abs=5e-5)
    if n <= 10:  # every subset of k answers
        subsets = list(itertools.combinations([True] * c + [False] * (n - c), k))
        share = sum(map(any, subsets)) / len(subsets)
        assert pass_at_k(n, c, k) == pytest.approx(share)


def test_I01_averages_and_ties():
    assert avg_at_k([1, 0, 0, 1]) == 0.5
    assert maj_at_k(["a", "a", "b"], [1, 1, 0]) == 1
    assert maj_at_k(["a", "b", "c"], [1, 0, 0]) == pytest.approx(1 / 3)
    assert maj_at_k([None, None, "b"], [0, 0, 1]) == 1


def test_I04_rollouts_and_updates_are_two_counters(run):
    made = run(problems=16, rollouts=3, minibatches=16)
    list(made.steps)
    assert made.state.rollouts == 3 and made.state.updates == 3 * 16
    assert Schedule(minibatches=16).updates_per_rollout * 100 == 1600


def test_I05_a_warmup_in_rollouts_counts_in_updates(run):
    made = run(problems=16, lr=1e-6, warmup_rollouts=20, minibatches=16, rollouts=2)
    rates = []
    step = made.state.optimiser.step

    def recorded():
        rates.append(made.state.optimiser.param_groups[0]["lr"])
        step()

    made.state.optimiser.step = recorded
    with pytest.warns(UserWarning, match="lr_scheduler.step"):  # the step is ours
        list(made.steps)
    assert rates[19] == pytest.approx(6.25e-8)
    assert len(rates) == 32 and rates[-1] == pytest.approx(1e-6 * 32 / 320)


def test_I06_no_prompt_is_on_both_sides(gsm8k):
    train, test = ({p.question for p in part} for part in (gsm8k.train, gsm8k.test))
    assert train and test and not train & test
    assert 0.9**100 == pytest.approx(2.7e-5, rel=0.02)  # a split by rows leaks them all


def test_I07_the_same_seed_is_bit_equal(run):
    def weights(seed):
        made = run(problems=8, rollouts=3, seed=seed, minibatches=4)
        list(made.steps)
        return made.policy.logits.detach()

    assert torch.equal(weights(0), weights(0))
    assert not torch.equal(weights(0), weights(1))


def test_I09_the_sampling_buffer_is_state(run):
    """Stop with groups waiting, restore, go on: bit-equal to never having stopped."""
    options = {"oversample": 4.0, "surplus": "carry"}
    whole = run(problems=8, rollouts=4, options=options)
    held = [whole.state.sampler.buffer for _ in whole.steps]
    waiting = [b is not None and len(b) >= 3 * 4 for b in held[:-1]]
    stop = waiting.index(True) + 1

    first = run(problems=8, rollouts=4, options=options)
    steps = iter(first.steps)
    for _ in range(stop):
        next(steps)
    second = run(problems=8, rollouts=4, options=options)
    second.policy.load_state_dict(first.policy.state_dict())
    second.task.cursor = first.task.cursor
    second.state.generator.set_state(first.state.generator.get_state())
    second.state.rollouts, second.state.updates = stop, first.state.updates
    saved = first.state.sampler.buffer.tensors()
    second.state.sampler.buffer = Rollout(**{k: v.clone() for k, v in saved.items()})
    list(second.steps)
    assert torch.equal(second.policy.logits, whole.policy.logits)


@pytest.mark.parametrize("splits", [1, 2, 5])
def test_I10_the_logged_loss_is_of_the_whole_mini_batch(run, graded, splits):
    """A01's input: 2 tokens of loss 1 and 8 tokens of loss 0."""
    made = run(micro_batches=splits, width=8)
    batch = graded([1, 0], [0, 1], length=[2, 8])
    scored = made.policy.log_prob(batch).detach()
    batch = Rollout(**(batch.tensors() | {"log_prob_old": scored}))
    weight = torch.tensor([-1.0, 0.0])
    logged = accumulate(
        made.algorithm, made.schedule, made.policy, batch, weight, batch.mask
    )
    assert logged["loss"].item() == pytest.approx(0.2)
    assert logged["tokens"] == 10


def test_I11_shares_are_merged_as_sums():
    records = [{"tokens": 2, "clip_high": 1}, {"tokens": 98, "clip_high": 0}]
    assert clip_diagnostics(records)["clip_high"].value == 0.01
    assert merge(records) == {"tokens": 100, "clip_high": 1}
    assert (Ratio(1, 2) + Ratio(0, 98)).value == 0.01
    assert Ratio(0, 0).value != Ratio(0, 0).value  # NaN: nothing was counted


@pytest.mark.parametrize(("temperature", "value"), [(1.0, 0.36533), (0.5, 0.09009)])
def test_I12_entropy_names_its_temperature(temperature, value):
    logits = torch.tensor([2.0, 0.0], dtype=torch.float64)
    assert entropy(logits, temperature).item() == pytest.approx(value, abs=1e-5)


ROWS = """
A01 A02 A03 A04 A06 A07 A08 A09 A11 A13 A14 A15
B01 B03 B04 B05 B06 B07 B08 B09 B11 B12 B14 B15
C01 C02 C03 C04 C05 C06 C08 C09 C11 D01 D02 D03
E01 E02 E03 E04 E06 E08 E09 E10
F01 F02 F03 F04 F05 F06 F07 F08 F10 F11 F12 F13 F15 F17 F18 F19
G01 G02 G03 G04 G06 G07 G09 G10 G11 G12 G14 G15 G16
I01 I02 I04 I05 I06 I07 I09 I10 I11 I12 I14
""".split()  # I15 ("does it work at 7B and below?") is the book itself


def test_I14_every_row_is_a_test(request):
    text = "".join(p.read_text() for p in request.path.parent.glob("test_*.py"))
    names = re.findall(r"def test_(\w+)", text)
    tested = {row for name in names for row in re.findall(r"[A-I]\d\d", name)}
    assert tested == set(ROWS)
