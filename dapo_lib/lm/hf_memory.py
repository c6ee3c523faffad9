"""How many responses fit into one forward and backward pass: an estimate, not a law.

The split cannot change a loss or a gradient (train.accumulate counts the denominator
over the whole mini-batch), so that a cautious estimate costs time and nothing else.
Left out: the sampler's cache, which is far smaller than a backward pass.
"""

from __future__ import annotations

import math
import os
from typing import Any

import torch

from dapo_lib.errors import BadInput, expect

ACTIVATIONS = 40  # numbers kept a token, layer and unit of width, attention included
LOGITS = 4  # logits, their float32 copy, log-softmax, gradient: of a token and a word
SHARE = 0.6  # of the free memory; the rest is fragmentation and what we did not count


def free_bytes(device: torch.device) -> int:
    """Memory that nobody uses, in bytes."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def pass_bytes(config: Any, tokens: int, *, bytes_each: int = 4) -> int:
    """Estimated bytes that one response of `tokens` needs in a training pass.

    `config` is a transformers configuration: hidden_size, num_hidden_layers,
    vocab_size. Grows with every one of them.
    """
    layers = config.num_hidden_layers * config.hidden_size * ACTIVATIONS * bytes_each
    return tokens * (layers + config.vocab_size * LOGITS * 4)


def state_bytes(parameters: int) -> int:
    """Gradient and AdamW's two moments, float32, that come after the first update."""
    return 12 * parameters


def split(responses: int, each: int, budget: int) -> int:
    """The smallest number of micro-batches whose largest fits into `budget` bytes.

    Raises ``BadInput`` where not even one response fits.

    >>> split(64, each=10, budget=170)  # 17 fit, so 4 passes of 16
    4
    """
    expect(responses >= 1, "responses", responses, "at least 1")
    fit = budget // each
    if fit < 1:
        raise BadInput(
            f"memory: one response needs about {each / 2**30:.1f} GiB, "
            f"{budget / 2**30:.1f} GiB are there; lower l_max or data.max_prompt"
        )
    return math.ceil(responses / min(fit, responses))


def micro_batches(
    model: Any, *, responses: int, tokens: int, dtype: torch.dtype
) -> int:
    """Micro-batches for an update of `responses` of at most `tokens` tokens each."""
    device = next(model.parameters()).device
    room = free_bytes(device) - state_bytes(model.num_parameters())
    each = pass_bytes(model.config, tokens, bytes_each=dtype.itemsize)
    return split(responses, each, max(0, int(room * SHARE)))
