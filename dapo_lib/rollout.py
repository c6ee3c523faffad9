"""One rollout is one plain record; everything after sampling takes it or its tensors.

Left out: text. A task that needs the text decodes `tokens` itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from dapo_lib.errors import expect


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

    def graded(
        self, correct: Tensor, reward: Tensor, valid: Tensor | None = None
    ) -> Rollout:
        """The same responses with what the task said of them."""
        verdicts = {"correct": correct, "reward": reward, "valid": valid}
        return Rollout(**(vars(self) | verdicts))

    def rows(self, which: Tensor | slice) -> Rollout:
        """The responses that an index or boolean tensor of shape [B] selects.

        A slice selects without a copy.
        """
        if isinstance(which, slice):
            return Rollout(**{k: v[which] for k, v in self.tensors().items()})
        if which.dtype is torch.bool:  # one look for the True ones, not one a field
            which = which.nonzero()[:, 0]
        which = which.to(self.index.device)
        picked = {k: v.index_select(0, which) for k, v in self.tensors().items()}
        return Rollout(**picked)

    def tensors(self) -> dict[str, Tensor]:
        """The fields that are not None, by name; ``Rollout(**tensors)`` is the inverse.

        This is what a checkpoint stores of a sampler's buffer.
        """
        return {k: v for k in FIELDS if (v := getattr(self, k)) is not None}


FIELDS = tuple(f.name for f in fields(Rollout))


def rule_reward(correct: Tensor, *, right: float = 1.0, wrong: float = -1.0) -> Tensor:
    """The rule reward of Eq 7: `right` for an equivalent answer, `wrong` otherwise.

    Shape: correct [...] of 0/1 -> [...] float64. No answer at all is wrong, not a third
    value: a group must not learn that silence beats an error.

    >>> rule_reward(torch.tensor([1, 0]))
    tensor([ 1., -1.], dtype=torch.float64)
    """
    return wrong + (right - wrong) * correct.bool().to(torch.float64)


class ResponseMask(NamedTuple):
    """Where responses are: mask [B, T] bool, length [B] tokens, truncated [B]."""

    mask: Tensor
    length: Tensor
    truncated: Tensor


def response_mask(
    tokens: Tensor, eos_ids: int | Sequence[int], pad_id: int
) -> ResponseMask:
    """Find each response in its padded row: up to and including the first EOS.

    Shape: tokens [B, T] -> mask [B, T] bool, length [B] in tokens, EOS counted, and
    truncated [B]. A row is truncated where no EOS was produced: a response that fills
    its row and ends in an EOS is complete. Padding may stand on either side. Raises
    ``ValueError`` where the pad id is an EOS id (the real EOS could not be told from
    padding), where no EOS id is given, or where tokens are not [B, T] integers.

    >>> found = response_mask(torch.tensor([[5, 3, 9, 0], [5, 6, 7, 8]]), [2, 3], 0)
    >>> found.mask.int().tolist(), found.length.tolist(), found.truncated.tolist()
    ([[1, 1, 0, 0], [1, 1, 1, 1]], [2, 4], [False, True])
    """
    ends = [eos_ids] if isinstance(eos_ids, int) else [int(e) for e in eos_ids]
    expect(len(ends) > 0, "eos_ids", ends, "at least one EOS id")
    expect(pad_id not in ends, "pad_id", pad_id, f"an id that is not an EOS id {ends}")
    whole = tokens.ndim == 2 and not tokens.is_floating_point()
    got = f"{tuple(tokens.shape)} {tokens.dtype}"
    expect(whole, "tokens", got, "integers of shape [B, T]")
    is_eos = torch.isin(tokens, tokens.new_tensor(ends))
    before = is_eos.cumsum(1) - is_eos.long()  # EOS tokens strictly before each place
    mask = (before == 0) & (tokens != pad_id)
    return ResponseMask(mask, mask.sum(1), ~is_eos.any(1))


def concatenate(parts: Sequence[Rollout]) -> Rollout:
    """Join rollouts row after row, padding token columns on the right to the widest.

    Shape: parts of [B_i, T_i] give [sum B_i, max T_i]. Raises ``ValueError`` on no
    parts, or on parts of which some have a field that others lack.
    """
    expect(len(parts) > 0, "parts", "none", "at least one rollout")
    if len(parts) == 1:
        return parts[0]
    width = max(p.tokens.shape[1] for p in parts)
    fields_of = [p.tensors() for p in parts]
    for other in fields_of:
        missing = sorted(fields_of[0].keys() ^ other.keys())
        expect(
            not missing, "parts", f"{missing} in some only", "the same fields in all"
        )
    joined = {}
    for name, first in fields_of[0].items():
        values = [f[name] for f in fields_of]
        if first.ndim == 2:
            short = [width - v.shape[1] for v in values]
            values = [
                pad(v, (0, n)) if n else v for v, n in zip(values, short, strict=True)
            ]
        joined[name] = torch.cat(values)
    return Rollout(**joined)
