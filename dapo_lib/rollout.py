"""One rollout is one plain record; everything after sampling takes it or its tensors.

Left out: text. A task that needs the text decodes `tokens` itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Prompts:
    """Prompts that were drawn, in draw order.

    Shape:
        index: [N] row of the task's problem table.
        group_id: [N] unique name of this draw; a later draw has a larger one.
        lane: [N] which of the independent runs, trained side by side, drew it.
    """

    index: Tensor
    group_id: Tensor
    lane: Tensor

    def __len__(self) -> int:
        return len(self.index)


@dataclass(frozen=True)
class Rollout:
    """B responses, padded on the right to T tokens, with all that training needs.

    Shape:
        index, group_id, lane: [B], as in :class:`Prompts`, repeated per response.
        tokens: [B, T] response token ids, the first EOS included.
        mask: [B, T] True on response tokens up to and including the first EOS.
        length: [B] tokens, EOS counted; truncated: [B] True where no EOS was produced.
        log_prob_old: [B, T] nats, recorded while sampling, 0 where masked.
        entropy: [B, T] nats, exact, at the sampling temperature, or None.
        correct: [B] 0/1 from the verifier; None until graded.
        reward: [B] rule reward, +1/-1 by default; None until graded.
        valid: [B] False where the reference answer cannot be parsed; None = all valid.
    """

    index: Tensor
    group_id: Tensor
    lane: Tensor
    tokens: Tensor
    mask: Tensor
    length: Tensor
    truncated: Tensor
    log_prob_old: Tensor
    entropy: Tensor | None = None
    correct: Tensor | None = None
    reward: Tensor | None = None
    valid: Tensor | None = None

    def __len__(self) -> int:
        return len(self.index)

    def graded(self, correct: Tensor, reward: Tensor, valid: Tensor | None = None):
        """The same responses with what the task said of them."""
        return replace(self, correct=correct, reward=reward, valid=valid)

    def rows(self, which: Tensor) -> Rollout:
        """The responses that an index or boolean tensor of shape [B] selects."""
        picked = {f.name: getattr(self, f.name) for f in fields(self)}
        return Rollout(**{k: v if v is None else v[which] for k, v in picked.items()})


def concatenate(parts: Sequence[Rollout]) -> Rollout:
    """Join rollouts row after row, padding token columns on the right to the widest.

    Shape: parts of [B_i, T_i] give [sum B_i, max T_i].
    """
    if len(parts) == 1:
        return parts[0]
    width = max(p.tokens.shape[1] for p in parts)
    joined = {}
    for f in fields(Rollout):
        values = [getattr(p, f.name) for p in parts]
        if values[0] is None:
            joined[f.name] = None
            continue
        if values[0].ndim == 2:
            values = [
                torch.nn.functional.pad(v, (0, width - v.shape[1])) for v in values
            ]
        joined[f.name] = torch.cat(values)
    return Rollout(**joined)
