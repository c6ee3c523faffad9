"""Evaluation on fixed prompts, with random numbers of its own.

Left out: intervals; a seed's numbers are one point, seeds are an experiment's unit.
"""

from __future__ import annotations

import torch

from dapo_lib.lm.policy import LMPolicy
from dapo_lib.metrics import Ratio, pass_at_k
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
    """Accuracy (avg@samples), pass@samples and the shape of what the policy writes.

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
    correct = rollout.correct.view(prompts, samples).sum(1).tolist()
    passed = [pass_at_k(samples, c, samples) for c in correct]
    return {
        "accuracy": sum(correct) / (prompts * samples),
        "pass": sum(passed) / prompts,
        **describe(rollout),
        **fixed.behaviour(rollout),
    }


def describe(rollout: Rollout) -> dict[str, float]:
    """Length, truncation and entropy of a graded rollout, over all its responses."""
    length = rollout.length.double()
    wrong = rollout.correct == 0
    tokens = rollout.mask.sum().item()
    out = {
        "length": length.mean().item(),
        "length_p90": length.quantile(0.9).item(),
        "length_wrong": Ratio(length[wrong].sum().item(), wrong.sum().item()).value,
        "truncated": rollout.truncated.double().mean().item(),
    }
    if rollout.entropy is not None:
        out["entropy"] = Ratio(rollout.entropy.double().sum().item(), tokens).value
    return out
