"""Evaluation against scalar oracles that walk the responses one by one."""

import math
from collections import Counter

import pytest
import torch

from dapo_lib.lm.evaluate import FIXED_SEED, describe, evaluate
from dapo_lib.lm.model import Decoder, ModelConfig
from dapo_lib.lm.policy import LMPolicy
from dapo_lib.lm.tasks import AllowedLetter


def expected_vote(answers, correct):
    """Share of right answers among the tied winners of a vote."""
    votes = Counter(a for a in answers if a >= 0)
    top = max(votes.values(), default=0)
    winners = [a for a, n in votes.items() if n == top]
    right = {a for a, c in zip(answers, correct, strict=True) if c}
    return sum(a in right for a in winners) / len(winners) if winners else 0.0


@pytest.fixture(scope="module")
def seen():
    """An untrained policy, its evaluation, and the same samples drawn again."""
    model = Decoder(
        ModelConfig(vocabulary=24, width=8, hidden=16, heads=2),
        torch.Generator().manual_seed(0),
    )
    task = AllowedLetter(3)
    policy = LMPolicy(model, task)
    found = evaluate(policy, seed=5, prompts=30, samples=8)
    assert policy.task is task and task.cursor == 0
    fixed = AllowedLetter(FIXED_SEED, size=30)
    prompts = LMPolicy(model, fixed)
    draws = torch.Generator().manual_seed(5)
    rollout = prompts.sample(fixed.draw(torch.tensor([30])), 8, draws)
    return found, fixed, fixed.grade(rollout)


def test_average_pass_and_vote_equal_the_scalar_ones(seen):
    found, task, rollout = seen
    answers = task.answer(rollout.tokens, rollout.length).view(30, 8).tolist()
    correct = rollout.correct.view(30, 8).tolist()
    votes = [expected_vote(a, c) for a, c in zip(answers, correct, strict=True)]
    assert 0 < found["maj"] < 1
    assert found["maj"] == pytest.approx(sum(votes) / 30)
    assert found["accuracy"] == pytest.approx(sum(map(sum, correct)) / 240)
    assert found["pass"] == pytest.approx(sum(map(any, correct)) / 30)


def test_mean_probability_is_over_tokens_not_responses(seen):
    found, _, rollout = seen
    said = [
        math.exp(p)
        for row, n in zip(
            rollout.log_prob_old.tolist(), rollout.length.tolist(), strict=True
        )
        for p in row[:n]
    ]
    assert found["probability"] == pytest.approx(sum(said) / len(said))
    assert describe(rollout)["probability"] == found["probability"]
