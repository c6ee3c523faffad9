"""Looking past the cap: what is cut, and what it would have been."""

import math

import pytest
import torch

from dapo_lib.experiments.arms import LADDER
from dapo_lib.experiments.truncation import run, uncut
from dapo_lib.lm.run import DIGIT_SUM, setting
from dapo_lib.train import Schedule


@pytest.fixture(scope="module")
def policy():
    return setting(LADDER["naive"], DIGIT_SUM, seed=0).policy


def test_nothing_is_cut_by_a_cap_that_is_never_reached(policy):
    found = uncut(policy, l_max=96, prompts=8, samples=4)
    assert found["cut"] == 0 and found["lost"] == 0
    assert math.isnan(found["right_if_cut"])


def test_the_shares_are_those_of_a_loop_over_responses(policy):
    task = policy.task
    found = uncut(policy, l_max=8, prompts=16, samples=4, seed=3)
    wide = type(task)(20_250_314, l_max=96, size=16)
    policy.task = wide
    generator = torch.Generator().manual_seed(3)
    drawn = wide.draw(torch.tensor([16]))
    rollout = wide.grade(policy.sample(drawn, 4, generator))
    policy.task = task
    pairs = list(zip(rollout.length.tolist(), rollout.correct.tolist(), strict=True))
    cut = [right for length, right in pairs if length > 8]
    right = [length for length, right in pairs if right]
    assert found["cut"] == pytest.approx(len(cut) / len(pairs))
    assert found["right_if_cut"] == pytest.approx(sum(cut) / len(cut))
    assert found["lost"] == pytest.approx(sum(n > 8 for n in right) / len(right))


def test_the_policy_gets_its_task_back(policy):
    task = policy.task
    uncut(policy, l_max=24, prompts=4, samples=2)
    assert policy.task is task


def test_a_run_has_a_row_for_each_look_and_is_the_same_again():
    schedule = Schedule(rollouts=2, prompts_per_rollout=2, group_size=4, minibatches=2)
    first = run([0], arms=("naive",), schedule=schedule, every=1)
    assert first.rollout.tolist() == [0, 1, 2]
    assert first.updates.tolist() == [0, 2, 4]
    assert first.equals(run([0], arms=("naive",), schedule=schedule, every=1))
