"""Lanes, sampling and scoring of the small suites' policies."""

import torch

from dapo_lib.algorithm import Algorithm
from dapo_lib.candidate.lanes import Lanes
from dapo_lib.candidate.suites.actions import (
    ActionTask,
    LinearPolicy,
    Table,
    TabularPolicy,
)
from dapo_lib.rollout import Prompts
from dapo_lib.train import Schedule, start, train

LENGTH = torch.tensor([[1, 2, 3], [4, 5, 6]])
CORRECT = torch.tensor([[1, 0, 0], [0, 1, 0]])
LOGITS = torch.tensor([[0.0, 1.0, -1.0], [0.5, 0.0, 0.0]], dtype=torch.float64)
SCHEDULE = Schedule(
    rollouts=6,
    prompts_per_rollout=2,
    group_size=4,
    minibatches=1,
    refresh_every=3,
    optimiser="sgd",
    lr=0.5,
    clip_norm=None,
    l_max=6,
)


def trained(seeds):
    policy = TabularPolicy(LOGITS, LENGTH, len(seeds))
    task = ActionTask(Table(CORRECT, LENGTH))
    algorithm = Algorithm()
    state = start(algorithm, SCHEDULE, policy, Lanes(seeds), lanes=len(seeds))
    for _ in train(algorithm, SCHEDULE, policy, task, state):
        pass
    return policy.weight.detach()


def test_a_lane_equals_the_run_of_its_seed_alone():
    together = trained([3, 4, 5])
    for lane, seed in enumerate([3, 4, 5]):
        assert torch.allclose(together[lane], trained([seed])[0], atol=1e-12)
    assert not torch.allclose(together[0], together[1])


def test_samples_follow_the_old_policy_and_are_scored_under_it():
    policy = TabularPolicy(LOGITS, LENGTH, 1)
    with torch.no_grad():
        policy.weight += torch.tensor([5.0, 0, 0])  # not yet the old policy
    n = 4000
    zeros = torch.zeros(1, dtype=torch.long)
    rollout = policy.sample(Prompts(zeros, zeros, zeros), n, Lanes([0]))
    share = torch.bincount(rollout.tokens[:, 0], minlength=3) / n
    assert torch.allclose(share.double(), LOGITS[0].softmax(-1), atol=0.03)
    assert torch.equal(rollout.length, LENGTH[0, rollout.tokens[:, 0]])
    assert torch.equal(rollout.mask.sum(1), rollout.length)
    expected = LOGITS[0].log_softmax(-1)[rollout.tokens[:, :1]]
    assert torch.allclose(rollout.log_prob_old, expected * rollout.mask)
    policy.refresh()
    now = policy.weight.detach()[0, 0].log_softmax(-1)[rollout.tokens[:, 0]]
    assert torch.allclose(policy.log_prob(rollout)[:, 0], now)


def test_linear_logits_are_features_times_the_lanes_weight():
    features = torch.randn(2, 3, 4, dtype=torch.float64)
    policy = LinearPolicy(features, LENGTH, 2)
    weight = torch.randn(2, 4, dtype=torch.float64)
    logits = policy.logits(weight, torch.tensor([0, 1]), torch.tensor([1, 0]))
    by_hand = torch.stack([features[0] @ weight[1], features[1] @ weight[0]])
    assert torch.allclose(logits, by_hand)


def test_only_allowed_prompts_are_drawn_and_graded_from_the_table():
    task = ActionTask(Table(CORRECT, LENGTH, torch.tensor([1])))
    prompts = task.draw(torch.tensor([3, 2]), Lanes([0, 1]))
    assert prompts.index.tolist() == [1] * 5
    assert prompts.lane.tolist() == [0, 0, 0, 1, 1]
    policy = TabularPolicy(LOGITS, LENGTH, 2)
    graded = task.grade(policy.sample(prompts, 4, Lanes([0, 1])))
    assert torch.equal(graded.correct, (graded.tokens[:, 0] == 1).long())
    assert set(graded.reward.tolist()) <= {1.0, -1.0}


def test_state_round_trip_keeps_the_parameter():
    policy = TabularPolicy(LOGITS, LENGTH, 1)
    saved = policy.state_dict()
    parameter = policy.weight
    with torch.no_grad():
        policy.weight.zero_()
    policy.load_state_dict(saved)
    assert policy.weight is parameter
    assert torch.equal(policy.weight.detach()[0], LOGITS)
