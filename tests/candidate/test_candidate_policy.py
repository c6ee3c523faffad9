"""The enumerable policy: exact where it is exact, and each seed alone or in company."""

from dataclasses import fields
from math import log

import pytest
import torch

from dapo_lib.candidate.lanes import BLOCK, Lanes
from dapo_lib.candidate.policy import CandidatePolicy, evaluate
from dapo_lib.candidate.recipe import ARMS, bench, run, schedule_of
from dapo_lib.candidate.table import build
from dapo_lib.candidate.task import CandidateTask
from dapo_lib.data.embedded import load_embedded
from dapo_lib.errors import BadInput
from dapo_lib.rollout import Prompts


@pytest.fixture(scope="module")
def small():
    data = load_embedded()
    return bench(build(data.train[:200]), build(data.test[:80]))


def policy(lanes: int = 1, l_max: int = 4) -> CandidatePolicy:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(5, 6, 3, generator=generator, dtype=torch.float64)
    length = torch.arange(30).view(5, 6) % 6 + 1
    made = CandidatePolicy(features, length, l_max=l_max, lanes=lanes)
    with torch.no_grad():
        made.weight.copy_(torch.randn(lanes, 3, generator=generator) / 3)
    made.refresh()
    return made


def drawn(n: int = 2000):
    made = policy()
    prompts = Prompts(
        torch.arange(n) % 5, torch.arange(n), torch.zeros(n, dtype=torch.long)
    )
    return made, made.sample(prompts, 4, Lanes([0]))


def test_frequencies_follow_the_probabilities() -> None:
    made, rollout = drawn()
    pi = (made.features @ made.old[0]).softmax(-1)
    for row in range(5):
        slots = rollout.tokens[rollout.index == row, 0]
        share = torch.bincount(slots, minlength=6) / len(slots)
        bound = 4.5 * (pi[row] * (1 - pi[row]) / len(slots)).sqrt()
        assert ((share - pi[row]).abs() <= bound).all()


def test_a_candidate_is_length_tokens_and_cut_past_l_max() -> None:
    made, rollout = drawn()
    full = made.length[rollout.index, rollout.tokens[:, 0]]
    assert (rollout.mask.sum(1) == rollout.length).all()
    assert (rollout.length == full.clamp(max=4)).all()
    assert (rollout.truncated == (full > 4)).all() and rollout.truncated.any()


def test_log_prob_of_the_old_weights_is_what_sampling_recorded() -> None:
    made, rollout = drawn(50)
    scored = torch.where(rollout.mask, made.log_prob(rollout), 0.0)
    assert torch.allclose(scored, rollout.log_prob_old, atol=1e-12)
    mixed = rollout.rows(torch.randperm(len(rollout)))
    scored = torch.where(mixed.mask, made.log_prob(mixed), 0.0)
    assert torch.allclose(scored, mixed.log_prob_old, atol=1e-12)


def test_a_cut_response_is_wrong_even_if_it_would_have_been_right() -> None:
    _, rollout = drawn()
    graded = CandidateTask(torch.zeros(5, dtype=torch.long)).grade(rollout)
    hit = rollout.tokens[:, 0] == 0
    assert (graded.correct[hit & rollout.truncated] == 0).all()
    assert (graded.correct[hit & ~rollout.truncated] == 1).all()
    assert (graded.reward == 2 * graded.correct - 1).all()


def test_streams_survive_the_end_of_a_block_and_a_resume() -> None:
    lanes, alone = Lanes([5, 6, 7]), Lanes([6])
    saved = None
    for step in range(3 * BLOCK // 100):
        need = torch.tensor([step % 4, 20 + step % 9, 90])
        lane = torch.arange(3).repeat_interleave(need)
        got = lanes.uniform(lane, 2)[lane == 1]
        want = alone.uniform(torch.zeros(int(need[1]), dtype=torch.long), 2)
        assert torch.equal(got, want)
        saved = lanes.state_dict() if step == 40 else saved
        if step == 41:
            after = got
    other = Lanes([0, 0, 0])
    other.load_state_dict(saved)
    need = torch.tensor([41 % 4, 20 + 41 % 9, 90])
    lane = torch.arange(3).repeat_interleave(need)
    assert torch.equal(other.uniform(lane, 2)[lane == 1], after)


def test_exact_quantities_of_the_uniform_policy(small) -> None:
    table = small.test
    zero = torch.zeros(1, table.features.shape[-1], dtype=torch.float64)
    exact = evaluate(zero, table.features, table.gold, table.length)
    assert exact.kl.item() == pytest.approx(0, abs=1e-12)
    assert exact.entropy.item() == pytest.approx(log(6))
    assert exact.expected_accuracy.item() == pytest.approx(1 / 6)
    assert exact.greedy.item() == pytest.approx((table.gold == 0).double().mean())


def outcome(bench, arm: str, seeds, steps: int = 24):
    sizes = dict(steps=steps, prompts_per_step=3, group_size=4)
    schedule = schedule_of(arm, **sizes, lr=0.05)
    return run(bench, ARMS[arm][0], schedule, seeds, every=12)


@pytest.mark.parametrize("arm", sorted(ARMS))
def test_a_lane_is_its_seed_alone(small, arm: str) -> None:
    together, alone = outcome(small, arm, [3, 4, 5]), outcome(small, arm, [4])
    assert torch.allclose(together.weight[1], alone.weight[0], atol=1e-9, rtol=0)
    assert together.rollouts[1] == alone.rollouts[0]
    assert together.weight.abs().max() > 1e-3  # something was learned


def test_the_same_seeds_twice_are_bit_equal(small) -> None:
    first, second = outcome(small, "dapo", [0, 1]), outcome(small, "dapo", [0, 1])
    assert torch.equal(first.weight, second.weight)
    for f in fields(first.test):
        assert torch.equal(getattr(first.test, f.name), getattr(second.test, f.name))


def test_every_arm_differs_from_dapo(small) -> None:
    weights = {arm: outcome(small, arm, [0, 1], 48).weight for arm in ARMS}
    reference = weights.pop("dapo")
    # no embedded candidate is long enough to be punished; tested where lengths are
    same = [arm for arm, w in weights.items() if torch.equal(w, reference)]
    assert set(same) <= {"without_soft"}


def test_bad_input_is_named(small) -> None:
    with pytest.raises(BadInput, match="algorithm: got 'ppo2'"):
        schedule_of("ppo2", steps=1, prompts_per_step=1, group_size=4, lr=0.1)
    with pytest.raises(BadInput, match="seeds"):
        Lanes([])
    with pytest.raises(BadInput, match="length"):
        CandidatePolicy(torch.zeros(2, 6, 3), torch.ones(3, 6), l_max=4)
