"""Evaluation on fixed prompts, with random numbers of its own.

Left out: intervals; a seed's numbers are one point, seeds are an experiment's unit.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dapo_lib.lm.policy import LMPolicy
from dapo_lib.metrics import Ratio, maj_at_k, pass_at_k
from dapo_lib.rollout import Rollout

PROMPTS, SAMPLES = 96, 8
FIXED_SEED = 20_250_314  # the prompts are the same for every seed and arm


def evaluate(
    policy: LMPolicy,
    *,
    seed: int = 0,
    prompts: int = PROMPTS,
    samples: int = SAMPLES,
) -> dict[str, float]:
    """avg@samples, pass@samples, maj@samples and the shape of what the policy writes.

    `prompts` fixed prompts, `samples` responses each; the task's state and the training
    generator are not touched. Length in tokens, entropy in nats per token.
    """
    training = policy.task
    fixed = type(training)(FIXED_SEED, l_max=training.l_max, size=prompts)
    generator = torch.Generator().manual_seed(seed)
    policy.task = fixed
    try:
        drawn = fixed.draw(torch.tensor([prompts]))
        rollout = fixed.grade(policy.sample(drawn, samples, generator))
    finally:
        policy.task = training
    correct = rollout.correct.view(prompts, samples)
    answers = fixed.answer(rollout.tokens, rollout.length).view(prompts, samples)
    return {
        **solved(correct),
        "maj": vote(answers, correct),
        **describe(rollout),
        **fixed.behaviour(rollout),
    }


def solved(correct: Tensor) -> dict[str, float]:
    """avg@k and pass@k, means over problems. Shape: [problems, k] of 0/1.

    >>> solved(torch.tensor([[1, 0], [0, 0]]))
    {'accuracy': 0.25, 'pass': 0.5}
    """
    problems, k = correct.shape
    passed = [pass_at_k(k, c, k) for c in correct.sum(1).tolist()]
    return {
        "accuracy": correct.sum().item() / (problems * k),
        "pass": sum(passed) / problems,
    }


def vote(answers: Tensor, correct: Tensor) -> float:
    """maj@k, mean over problems; -1 is no answer and has no vote. Shape: [problems, k].

    >>> answers = torch.tensor([[7, 7, 3], [-1, -1, 4]])
    >>> vote(answers, torch.tensor([[0, 0, 1], [0, 0, 1]]))
    0.5
    """
    votes = [[a if a >= 0 else None for a in row] for row in answers.tolist()]
    rows = zip(votes, correct.tolist(), strict=True)
    return sum(maj_at_k(*row) for row in rows) / len(votes)


def describe(rollout: Rollout) -> dict[str, float]:
    """Length, truncation, mean token probability and entropy, over all responses."""
    length = rollout.length.double()
    wrong = rollout.correct == 0
    tokens = rollout.mask.sum().item()
    probability = rollout.log_prob_old.double().exp() * rollout.mask
    out = {
        "length": length.mean().item(),
        "length_p90": length.quantile(0.9).item(),
        "length_wrong": Ratio(length[wrong].sum().item(), wrong.sum().item()).value,
        "truncated": rollout.truncated.double().mean().item(),
        "probability": Ratio(probability.sum().item(), tokens).value,
    }
    if rollout.entropy is not None:
        out["entropy"] = Ratio(rollout.entropy.double().sum().item(), tokens).value
    return out
