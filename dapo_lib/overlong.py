"""Overlong reward shaping (Eq 13, section 3.4): a soft penalty, or a mask.

Left out: the length itself. `length` counts the EOS and comes from the rollout.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dapo_lib.errors import expect


def soft_overlong(length: Tensor, *, l_max: int, l_cache: int) -> Tensor:
    """Penalty that falls linearly from 0 to -1 over the last `l_cache` tokens.

    Shape: length [...] in tokens, EOS counted -> [...] float64 in [-1, 0], in units of
    reward. `l_max` is the hard cap on generated tokens (20,480 in the paper's runs, not
    16,384). With ``l_cache=0`` the penalty is 0 up to `l_max` and -1 past it. Raises
    ``ValueError`` unless 0 <= l_cache <= l_max and lengths >= 0. Source: paper Eq 13,
    bounded by -1.

    >>> soft_overlong(torch.tensor([16, 17, 18, 20, 99]), l_max=20, l_cache=4)
    tensor([ 0.0000, -0.2500, -0.5000, -1.0000, -1.0000], dtype=torch.float64)
    """
    length = torch.as_tensor(length)
    expect(l_max >= 1, "l_max", l_max, "a number of tokens >= 1")
    expect(0 <= l_cache <= l_max, "l_cache", l_cache, f"0 <= l_cache <= l_max={l_max}")
    fine = bool((length >= 0).all())
    expect(fine, "length", "a negative value or NaN", "numbers of tokens >= 0")
    room = l_max - l_cache - length.to(torch.float64)  # negative inside the cache
    # without a cache the slope is a step: one token past l_max is worth -1
    return (room / max(l_cache, 1)).clamp(-1.0, 0.0)


def linear_overlong(length: Tensor, *, free: int = 3, slope: float = 0.05) -> Tensor:
    """Penalty of `slope` reward units for each token past `free`, with no lower bound.

    Shape: length [...] in tokens -> [...] float64, <= 0. This is the `seed` recipe's
    form, kept to reproduce its table; it is not DAPO's (see :func:`soft_overlong`).

    >>> linear_overlong(torch.tensor([2, 4]))
    tensor([ 0.0000, -0.0500], dtype=torch.float64)
    """
    return slope * (free - torch.as_tensor(length).to(torch.float64)).clamp(max=0.0)


def overlong_mask(mask: Tensor, truncated: Tensor) -> Tensor:
    """Overlong filtering: the token mask without the rows that were cut.

    Shape: mask [B, T] of 0/1, truncated [B] of 0/1 -> [B, T] bool. Count denominators
    after it, so that a cut row leaves numerator and denominator. Raises ``ValueError``
    on shapes that do not match. Source: paper section 3.4.

    >>> overlong_mask(torch.ones(2, 2).bool(), torch.tensor([False, True]))
    tensor([[ True,  True],
            [False, False]])
    """
    expect(mask.ndim == 2, "mask", tuple(mask.shape), "shape [B, T]")
    good = truncated.shape == mask.shape[:1]
    expect(good, "truncated", tuple(truncated.shape), f"shape {tuple(mask.shape[:1])}")
    return mask.bool() & ~truncated.bool()[:, None]
