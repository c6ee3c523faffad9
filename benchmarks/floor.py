"""What no implementation can skip: the matrix products of a rollout and of its updates.

Products of the shapes that the work has (live rows of every decoding step, packed
tokens of every mini-batch), by ``torch.mm`` into fresh memory, forward and both
gradients. Left out: attention, norms, element-wise work, sampling, the optimiser; they
are what the ratio measures.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from dapo_lib.lm.model import ModelConfig


def linears(config: ModelConfig) -> list[tuple[int, int]]:
    """(in, out) of every linear of the blocks."""
    d, h = config.width, config.hidden
    gate = 2 if config.mlp == "swiglu" else 1
    return [(d, 3 * d), (d, d), *[(d, h)] * gate, (h, d)] * config.layers


def sampling_floor(
    config: ModelConfig, length: Tensor, n_prompts: int, width: int
) -> Callable[[], None]:
    """The products of one rollout: prompts once, then every live row's next token."""
    steps = [int((length > t).sum()) for t in range(1, int(length.max()))]
    shapes = [(n_prompts * width, n_prompts), *((n, n) for n in steps if n)]
    biggest = max(n for n, _ in shapes)
    weights = [torch.randn(o, i) for i, o in linears(config)]
    inputs = {i: torch.randn(biggest, i) for i, _ in linears(config)}
    head = torch.randn(config.vocabulary, config.width)

    def run() -> None:
        for tokens, predicted in shapes:
            for w in weights:
                torch.mm(inputs[w.shape[1]][:tokens], w.t())
            torch.mm(inputs[config.width][:predicted], head.t())

    return run


def training_floor(
    config: ModelConfig, shapes: list[tuple[int, int]]
) -> Callable[[], None]:
    """The products of the updates; `shapes`: (packed, predicted) tokens of each."""
    biggest = max(n for n, _ in shapes)
    weights = [torch.randn(o, i) for i, o in linears(config)]
    head = torch.randn(config.vocabulary, config.width)
    wide = {s: torch.randn(biggest, s) for w in [*weights, head] for s in w.shape}

    def run() -> None:
        for tokens, predicted in shapes:
            for w, n in [*((w, tokens) for w in weights), (head, predicted)]:
                x, g = wide[w.shape[1]][:n], wide[w.shape[0]][:n]
                torch.mm(x, w.t())
                torch.mm(g, w)
                torch.mm(g.t(), x)

    return run
