"""The filter on correctness against the filter on shaped rewards, on real texts."""

import os
from itertools import count

import pytest
import torch

from dapo_lib.advantage import group_advantages
from dapo_lib.candidate.suites import real_solutions
from dapo_lib.overlong import soft_overlong
from dapo_lib.rollout import Prompts, Rollout
from dapo_lib.sampling import DynamicSampler

SCHEDULE = real_solutions.SCHEDULE.model_copy(update={"rollouts": 20, "lr": 0.1})


def dead_group(prompts: Prompts) -> Rollout:
    """Four wrong answers of 10, 10, 10 and 18 tokens."""
    length = torch.tensor([10, 10, 10, 18])
    mask = torch.arange(18) < length[:, None]
    return Rollout(
        index=prompts.index.repeat(4),
        group_id=prompts.group_id.repeat(4),
        lane=prompts.lane.repeat(4),
        tokens=mask.long(),
        mask=mask,
        length=length,
        truncated=length < 0,
        log_prob_old=torch.zeros(mask.shape),
        correct=torch.zeros(4, dtype=torch.long),
        reward=-torch.ones(4, dtype=torch.float64),
    )


def shape(rollout: Rollout):
    return rollout.reward + soft_overlong(rollout.length, l_max=20, l_cache=4)


@pytest.fixture
def draw():
    """One prompt a call, each with a new and larger group id."""
    ids = count()
    zeros = torch.zeros(1, dtype=torch.long)
    return lambda need: Prompts(zeros, torch.tensor([next(ids)]), zeros)


def test_f07_the_fault_keeps_a_dead_group_and_rewards_being_short(draw):
    sampler = real_solutions.FilterOnShapedReward(1, 4, shape=shape)
    batch, ledger = sampler.fill(draw, dead_group)
    assert len(batch) == 4 and ledger.all_wrong.tolist() == [1]
    advantage = group_advantages(shape(batch), batch.group_id)
    assert advantage.tolist() == pytest.approx([0.5, 0.5, 0.5, -1.5], abs=1e-4)


def test_f07_the_right_filter_drops_it(draw):
    batch, ledger = DynamicSampler(1, 4, max_rounds=3).fill(draw, dead_group)
    assert batch is None and ledger.all_wrong.tolist() == [3]


@pytest.fixture(scope="module")
def frame():
    if not os.environ.get("DAPO_DATA"):
        pytest.skip("DAPO_DATA does not name a data folder")
    arms = list(real_solutions.ARMS)[:2]
    return real_solutions.run(range(3), arms=arms, schedule=SCHEDULE)


def values(frame, arm, metric):
    rows = frame[(frame.arm == arm) & (frame.metric == metric)]
    return rows.set_index("seed").value


@pytest.mark.data
def test_filtering_on_the_shaped_reward_hurts_in_every_seed(frame):
    right = values(frame, "filter on correctness", "greedy")
    fault = values(frame, "filter on shaped reward", "greedy")
    random = values(frame, "baselines", "random").item()
    assert (right - fault > 0.03).all()
    assert right.mean() > random + 0.03


@pytest.mark.data
def test_the_fault_trains_on_dead_groups_and_shortens(frame):
    assert values(frame, "filter on correctness", "dead_share").max() == 0
    assert values(frame, "filter on shaped reward", "dead_share").min() > 0.2
    right = values(frame, "filter on correctness", "length")
    fault = values(frame, "filter on shaped reward", "length")
    assert (fault < right - 5).all()
