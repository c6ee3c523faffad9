"""The linear candidate policy: what it draws, and the gradient of its KL term."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dapo_lib.candidate.seed_policy import SeedPolicy, log_policy
from dapo_lib.candidate.seed_task import SeedTask, candidate_table
from dapo_lib.data.gsm8k import problem

PROBLEMS = [problem("q?", f"#### {n}") for n in range(3, 60)]


@pytest.fixture
def policy():
    policy = SeedPolicy(candidate_table(PROBLEMS, np.random.default_rng(0)))
    with torch.no_grad():
        policy.weight += torch.linspace(-1, 1, 8, dtype=torch.float64)
    policy.refresh()
    return policy


@pytest.fixture
def rollout(policy):
    generators = [np.random.default_rng(3)]
    prompts = SeedTask(policy.table).draw(torch.tensor([50]), generators)
    return policy.sample(prompts, 4, generators)


def test_a_group_holds_four_different_candidates(rollout):
    slots = rollout.tokens[:, 0].view(-1, 4)
    assert all(len(set(row)) == 4 for row in slots.tolist())


def test_a_candidate_of_length_l_is_l_tokens_of_one_probability(policy, rollout):
    assert torch.equal(rollout.mask.sum(1), rollout.length)
    log_prob = policy.log_prob(rollout)
    assert (log_prob == log_prob[:, :1]).all()
    assert torch.equal(torch.where(rollout.mask, log_prob, 0.0), rollout.log_prob_old)


def test_old_probabilities_survive_an_update(policy, rollout):
    with torch.no_grad():
        policy.weight += 1.0
    at_old = policy.log_prob(rollout, policy.old)
    assert torch.equal(torch.where(rollout.mask, at_old, 0.0), rollout.log_prob_old)
    assert not torch.equal(policy.log_prob(rollout), at_old)


def test_the_kl_term_has_the_gradient_of_kl_ref_pi(policy, rollout):
    """Its gradient in the weights is F^T (pi - uniform), averaged over the rows."""
    policy.kl_reference(rollout).mean().backward()
    features = policy.table.features[0, rollout.index]
    pi = log_policy(features, policy.weight.detach()).exp()
    wanted = torch.einsum("bkf,bk->f", features, pi - 1 / 6) / len(rollout)
    assert torch.allclose(policy.weight.grad[0], wanted, rtol=0, atol=1e-14)
    reverse = pi * (pi.log() - (pi * pi.log()).sum(-1, keepdim=True))
    other = torch.einsum("bkf,bk->f", features, reverse) / len(rollout)
    assert (other - wanted).abs().max() > 1e-2  # KL(pi || ref) pulls elsewhere
