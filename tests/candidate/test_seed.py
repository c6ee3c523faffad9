"""The published table of the `seed` recipe, exactly; and that lanes are runs alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from dapo_lib.candidate import seed
from dapo_lib.candidate.seed_policy import SeedPolicy
from dapo_lib.candidate.seed_task import SeedTask, candidate_table, stack
from dapo_lib.data.gsm8k import problem
from dapo_lib.errors import BadInput
from dapo_lib.train import start, train

PROBLEMS = [problem(f"q {n}?", f"#### {n}") for n in range(3, 300, 7)]


@pytest.fixture(scope="module")
def published(gsm8k):
    return seed.run_seed(gsm8k.train, gsm8k.test)


@pytest.mark.data
def test_the_published_table(published):
    untrained, trained = published.untrained, published.trained
    assert (untrained.accuracy, trained.accuracy) == (0.1640625, 0.7578125)
    assert untrained.mean_reward == pytest.approx(0.3126, abs=5e-5)
    assert trained.mean_reward == pytest.approx(0.7996, abs=5e-5)
    assert untrained.kl_reference == pytest.approx(0, abs=1e-12)
    assert trained.kl_reference == pytest.approx(1.0870484, abs=1e-7)
    assert published.whole_test.accuracy == pytest.approx(0.7028, abs=5e-5)


@pytest.mark.data
def test_the_published_diagnostics(published):
    d = published.diagnostics
    assert d["refreshes"] == 18
    assert (d["eps_low"], d["eps_high"]) == (0.2, 0.28)
    assert (d["clip_fraction"], d["mean_pseudo_tokens"]) == (0.25, 2.25)
    assert d["overlong_penalty"] == pytest.approx(0.0125)
    assert d["constant_groups"] == 0


@pytest.mark.data
def test_the_policys_expectation(published):
    pair = published.untrained.expected_reward, published.trained.expected_reward
    assert pair == pytest.approx((0.2927, 0.7270), abs=5e-5)


def by_hand(table, steps, group_size, generator):
    """The recipe as one plain NumPy loop: no autograd, no shared code but the table."""
    features, reward = table.features[0].numpy(), table.reward[0].numpy()
    length = table.length[0].numpy()
    weight, old = np.zeros(8), np.zeros(8)

    def softmax(z):
        e = np.exp(z - z.max())
        return e / e.sum()

    for step in range(1, steps + 1):
        row = generator.integers(0, len(features))
        f, p_old = features[row], softmax(features[row] @ old)
        pick = generator.choice(6, group_size, replace=False, p=p_old)
        pi = softmax(f @ weight)
        shaped = reward[row, pick] - 0.05 * np.maximum(length[row, pick] - 3, 0)
        if shaped.std() > 1e-8:
            advantage = (shaped - shaped.mean()) / (shaped.std() + 1e-6)
            share = length[row, pick] / length[row, pick].sum()
            ratio = pi[pick] / p_old[pick]
            clipped = np.clip(ratio, 0.8, 1.28) * advantage
            live = ratio * advantage <= clipped + 1e-12
            score = f[pick] - pi @ f
            gradient = ((live * share * ratio * advantage)[:, None] * score).sum(0)
            gradient -= 0.02 * f.T @ (pi - 1 / 6)
            weight = weight + 0.08 * np.clip(gradient, -5, 5)
        if step % 16 == 0:
            old = weight.copy()
    return weight


@pytest.mark.parametrize("group_size", [2, 4, 6])
def test_the_loop_equals_a_hand_written_one(group_size):
    result = seed.run_seed(PROBLEMS, PROBLEMS, steps=40, group_size=group_size, seed=7)
    table = candidate_table(PROBLEMS, np.random.default_rng(7))
    wanted = by_hand(table, 40, group_size, np.random.default_rng(7))
    assert np.allclose(result.weight, wanted, rtol=0, atol=1e-10)


def test_a_lane_equals_the_run_alone():
    together = seed.run_seeds(PROBLEMS, PROBLEMS, seeds=[3, 4, 5], steps=20)
    for result, number in zip(together, (3, 4, 5), strict=True):
        alone = seed.run_seed(PROBLEMS, PROBLEMS, seed=number, steps=20)
        assert result.weight == pytest.approx(alone.weight, rel=0, abs=1e-12)
        assert result.diagnostics == pytest.approx(alone.diagnostics)
        assert result.trained.accuracy == alone.trained.accuracy


def test_the_same_seed_twice_is_bit_equal():
    a, b = (seed.run_seed(PROBLEMS, PROBLEMS, steps=30) for _ in range(2))
    assert (a.weight, a.trained) == (b.weight, b.trained)


def test_before_the_first_step_the_policy_is_uniform():
    result = seed.run_seed(PROBLEMS, PROBLEMS, steps=0)
    assert result.untrained == result.trained
    assert result.untrained.expected_accuracy == pytest.approx(1 / 6)
    assert result.untrained.kl_reference == pytest.approx(0, abs=1e-12)
    assert result.diagnostics["refreshes"] == 0
    assert "last step" not in seed.format_table(result)


def test_kl_is_log_six_minus_entropy():
    table = candidate_table(PROBLEMS, np.random.default_rng(0))
    weight = torch.linspace(-1, 1, 8, dtype=torch.float64)[None]
    (scores,) = seed.scores(table, weight)
    pi = torch.softmax(table.features[0] @ weight[0], -1)
    direct = (pi * (pi * 6).log()).sum(-1).mean()
    assert scores.kl_reference == pytest.approx(float(direct), abs=1e-12)
    assert scores.kl_reference < math.log(6)


def test_each_switch_changes_the_weights():
    base = seed.run_seed(PROBLEMS, PROBLEMS, steps=20).weight
    for change in (
        {"eps_high": 0.01, "eps_low": 0.01},
        {"kl_coef": 0.0},
        {"lr": 0.04},
        {"variant": seed.Variant(leaks=("integer",))},
        {"variant": seed.Variant(equal_lengths=True)},
    ):
        other = seed.run_seed(PROBLEMS, PROBLEMS, steps=20, **change).weight
        assert max(abs(a - b) for a, b in zip(base, other, strict=True)) > 1e-4, change


def test_the_policy_state_resumes_bit_equal():
    table = stack([candidate_table(PROBLEMS, np.random.default_rng(1))])
    algorithm, generators = seed.seed_algorithm(), [np.random.default_rng(1)]
    whole, halves = SeedPolicy(table), SeedPolicy(table)

    def run(policy, schedule, generator, state=None):
        state = state or start(algorithm, schedule, policy, generator)
        list(train(algorithm, schedule, policy, SeedTask(table), state))
        return state

    run(whole, seed.seed_schedule(40), [np.random.default_rng(1)])
    state = run(halves, seed.seed_schedule(23), generators)
    resumed = SeedPolicy(table)
    resumed.load_state_dict(halves.state_dict())
    again = start(algorithm, seed.seed_schedule(40), resumed, generators)
    again.rollouts = state.rollouts
    run(resumed, seed.seed_schedule(40), generators, again)
    assert torch.equal(whole.weight, resumed.weight)
    assert whole.refreshes == resumed.refreshes == 2


@pytest.mark.parametrize(
    ("option", "value", "name"),
    [
        ("group_size", 1, "group_size"),
        ("group_size", 7, "group_size"),
        ("steps", -1, "steps"),
        ("seed", -1, "seed"),
        ("maximum_examples", 3, "maximum_examples"),
        ("variant", seed.Variant(leaks=("gold",)), "leaks"),
    ],
)
def test_bad_options_are_named(option, value, name):
    with pytest.raises(BadInput, match=f"^{name}: got"):
        seed.run_seed(PROBLEMS, PROBLEMS, **{option: value})


def test_the_table_prints_what_the_run_reached():
    result = seed.run_seed(PROBLEMS, PROBLEMS, steps=16)
    text = seed.format_table(result)
    assert f"{result.trained.accuracy:.4f}" in text and "clip 0.20/0.28" in text
    assert set(result.as_dict()["metrics"]["trained"]) >= {
        "accuracy",
        "mean_reward",
        "kl_reference",
    }
