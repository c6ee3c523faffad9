"""Traps of groups: advantages that divide noise, filters that read the wrong number.

Left out: sampling. A group is a list of rewards, or of 0/1 for wrong and right.
"""

from __future__ import annotations

import numpy as np
import torch

from dapo_lib.advantage import group_advantages
from dapo_lib.overlong import soft_overlong
from dapo_lib.rollout import rule_reward
from dapo_lib.sampling import has_signal


def noise_over_noise(rewards: list) -> list[float]:
    """A constant group in float32: the rounding of its mean, divided by eps."""
    r = torch.tensor(rewards, dtype=torch.float32)
    return ((r - r.mean()) / (r.std() + 1e-6)).tolist()


def exactly_zero(rewards: list) -> list[float]:
    """The library's advantages: a constant group is 0, not nearly 0."""
    return _advantages(torch.tensor(rewards, dtype=torch.float32))


def one_pass_std(rewards: list) -> list[float]:
    """Leave-one-out, the deviation of the others as E[x^2] - E[x]^2 in float32."""
    r = torch.tensor(rewards, dtype=torch.float32)
    n = len(r) - 1
    mean = (r.sum() - r) / n
    variance = (((r * r).sum() - r * r) / n - mean * mean) * n / (n - 1)
    std = variance.clamp(min=0).sqrt()
    return torch.where(std > 0, (r - mean) / (std + 1e-6), r - mean).tolist()


def two_pass_std(rewards: list) -> list[float]:
    """The library's advantages: centred first, then squared, in float64."""
    return _advantages(torch.tensor(rewards, dtype=torch.float32))


def silence_is_golden(answers: list) -> list[float]:
    """Rewards +1 right, -1 wrong, and a friendly 0 where there is no answer (None)."""
    return _advantages(torch.tensor([0.0 if a is None else a for a in answers]))


def silence_is_wrong(answers: list) -> list[float]:
    """No answer is a wrong answer: the group learns nothing from a bad excuse."""
    correct = torch.tensor([a == 1 for a in answers])
    return _advantages(rule_reward(correct))


def filter_on_shaped(correct: list, lengths: list) -> bool:
    """Keep a group whose shaped rewards differ (l_max 20, l_cache 4)."""
    reward = rule_reward(torch.tensor(correct))
    shaped = reward + soft_overlong(torch.tensor(lengths), l_max=20, l_cache=4)
    return bool(shaped.std() > 0)


def filter_on_correct(correct: list, lengths: list) -> bool:
    """Keep a group of which some answers, not all, are right. Lengths do not matter."""
    return _alive(correct)


def float_std_filter(correct: list, rewards: list) -> bool:
    """Keep a group whose rewards have a standard deviation above 0."""
    return bool(np.std(rewards) > 0)


def integer_filter(correct: list, rewards: list) -> bool:
    """Keep by counting right answers: integers have no rounding."""
    return _alive(correct)


def _advantages(rewards: torch.Tensor) -> list[float]:
    return group_advantages(rewards, torch.zeros(len(rewards))).tolist()


def _alive(correct: list) -> bool:
    right, size = torch.tensor(sum(correct)), torch.tensor(len(correct))
    return bool(has_signal(right, size))
