"""Length in closed form: token level as a covariance, corners of the penalty; 11, 14.

Left out: the mechanisms themselves, which are objective.py and overlong.py.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dapo_lib.errors import expect
from dapo_lib.overlong import soft_overlong


def token_level_objective(length: Tensor, advantage: Tensor) -> Tensor:
    """A group's token-level objective at ratio 1: Cov(length, A) / mean(length).

    Shape: length [..., G] in tokens, advantage [..., G] of mean 0 -> [...] float64. The
    covariance is the population's (form 11). Raises ``ValueError`` on shapes that do
    not match, lengths that sum to 0 and advantages whose mean is not 0. Source: Eq 12.

    >>> token_level_objective(torch.tensor([30, 10]), torch.tensor([1.0, -1.0]))
    tensor(0.5000, dtype=torch.float64)
    """
    length, advantage = _checked(length, advantage)
    mean = length.mean(-1, keepdim=True)
    covariance = ((length - mean) * advantage).mean(-1)
    return covariance / mean.squeeze(-1)


def sample_level_objective(length: Tensor, advantage: Tensor) -> Tensor:
    """Value of a group's sample-level objective at ratio 1: 0, whatever the lengths.

    Shape: as :func:`token_level_objective`. Source: paper Eq 5 (form 11).

    >>> sample_level_objective(torch.tensor([30, 10]), torch.tensor([1.0, -1.0]))
    tensor(0., dtype=torch.float64)
    """
    length, advantage = _checked(length, advantage)
    return (length * advantage / length).mean(-1)


def penalty_corners(l_max: int, l_cache: int) -> dict[str, tuple[float, float]]:
    """The points that fix the soft penalty: name -> (length in tokens, penalty).

    0 up to l_max - l_cache, -1/2 midway, -1 from l_max on (form 14, paper Eq 13).
    Raises ``ValueError`` unless 1 <= l_cache <= l_max.

    >>> penalty_corners(20, 4)["midway"]
    (18.0, -0.5)
    """
    expect(1 <= l_cache <= l_max, "l_cache", l_cache, f"1 <= l_cache <= l_max={l_max}")
    places = {
        "free_until": l_max - l_cache,
        "midway": l_max - l_cache / 2,
        "full_from": l_max,
        "beyond": 2 * l_max,
    }
    penalty = soft_overlong(
        torch.tensor(list(places.values()), dtype=torch.float64),
        l_max=l_max,
        l_cache=l_cache,
    )
    return {
        name: (float(place), float(value))
        for (name, place), value in zip(places.items(), penalty, strict=True)
    }


def _checked(length: Tensor, advantage: Tensor) -> tuple[Tensor, Tensor]:
    length = torch.as_tensor(length, dtype=torch.float64)
    advantage = torch.as_tensor(advantage, dtype=torch.float64)
    shape = tuple(length.shape)
    same = advantage.shape == length.shape
    expect(same, "advantage", tuple(advantage.shape), f"shape {shape}")
    expect(bool((length > 0).all()), "length", "a value < 1", "lengths >= 1 token")
    centred = bool((advantage.mean(-1).abs() < 1e-6).all())
    expect(centred, "advantage", "a mean that is not 0", "group-relative advantages")
    return length, advantage
