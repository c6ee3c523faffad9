"""Traps of length, masks, answers and averages.

Left out: the tokenizer. Tokens are integers, a response is a list of them.
"""

from __future__ import annotations

import re

import torch

from dapo_lib.metrics import Ratio, pass_at_k
from dapo_lib.overlong import soft_overlong
from dapo_lib.rollout import response_mask
from dapo_lib.verifier import verify


def no_lower_clamp(length: int, l_max: int, l_cache: int) -> float:
    """Eq 13 by its middle line alone: the slope goes on below -1."""
    return min((l_max - l_cache - length) / l_cache, 0.0)


def clamped_at_minus_one(length: int, l_max: int, l_cache: int) -> float:
    """Eq 13 with all three lines: never below -1."""
    return soft_overlong(torch.tensor(length), l_max=l_max, l_cache=l_cache).item()


def mask_by_pad_id(tokens: list, eos: int) -> list[int]:
    """With pad = eos, dropping the pad id drops the EOS that the model chose too."""
    return [int(token != eos) for token in tokens]


def mask_to_first_eos(tokens: list, eos: int) -> list[int]:
    """The first EOS belongs to the response, all after it does not."""
    found = response_mask(torch.tensor([tokens]), eos, pad_id=-1)
    return found.mask[0].int().tolist()


def mean_of_means(counts: list) -> float:
    """Average the shares of the updates, whatever they were counted over."""
    return sum(total / count for total, count in counts) / len(counts)


def sums_then_one_division(counts: list) -> float:
    """Add sums and counts; divide once."""
    return sum((Ratio(*pair) for pair in counts), Ratio(0, 0)).value


def bootstrap_pass(n: int, c: int, k: int) -> float:
    """pass@k by drawing k answers with replacement: 1 - (1 - c/n)^k in the limit."""
    return 1 - (1 - c / n) ** k


def closed_form_pass(n: int, c: int, k: int) -> float:
    """pass@k by counting: 1 - C(n-c, k) / C(n, k)."""
    return pass_at_k(n, c, k)


def first_closing_brace(response: str) -> str:
    """The box ends at the first brace that closes anything."""
    return re.search(r"\\boxed\{(.*?)\}", response).group(1)


def matching_brace(response: str) -> str:
    """The box ends at the brace that closes it."""
    return verify(response, "0").extracted
