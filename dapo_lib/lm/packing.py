"""Log-probabilities of a mini-batch without padding, and each prompt computed once.

Flat order: [prompt tokens, time-major | response tokens but the last, longest row
first]. Attention is a short list of segments: the prompts, then a few buckets of rows
of similar length, each an index into the flat tokens; the index *is* the sharing.
Left out: ragged prompts (a task's prompts have one width).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from dapo_lib.lm.model import Decoder

BUCKETS, BUCKET_ROWS = 4, 16  # at most so many; a bucket of fewer rows does not pay


class Segment(NamedTuple):
    """`rows` rows of similar length, read as `longest` tokens after their prompts."""

    rows: int
    longest: int
    mask: Tensor


class Packed(NamedTuple):
    """A mini-batch as flat tokens and the plan of who attends to whom.

    Shape: ids, position [tokens]; target [tokens - U * P]; slots, what the segments
    read, row after row: a prompt's tokens, then a response's, padded to its bucket;
    back, where each response token is found in the padded outputs of all segments;
    place [B, T], where each response token's log-probability is found in
    [0 | first tokens | targets].
    """

    ids: Tensor
    position: Tensor
    target: Tensor
    prompts: tuple[int, int]
    segments: list[Segment]
    slots: Tensor
    back: Tensor
    place: Tensor

    def attend(self, layer: int, qkv: Tensor) -> Tensor:
        """Causal attention inside prompts, and from responses to prompt and self."""
        n_prompts, width = self.prompts
        own = qkv[: n_prompts * width].unflatten(0, (width, -1))
        q, k, v = own.permute(2, 1, 3, 0, 4)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        flat = [out.permute(2, 0, 1, 3).flatten(2).flatten(0, 1)]
        if self.segments:
            read = F.embedding(self.slots, qkv.flatten(1)).unflatten(1, qkv.shape[1:])
            sizes = [s.rows * (width + s.longest) for s in self.segments]
            parts = [
                segment_attention(s, part, width)
                for s, part in zip(self.segments, read.split(sizes), strict=True)
            ]
            flat.append(F.embedding(self.back, torch.cat(parts)))
        return torch.cat(flat)


def segment_attention(s: Segment, qkv: Tensor, width: int) -> Tensor:
    """Attention of a bucket; its padded outputs [rows * longest, heads * dim].

    Shape: qkv [rows * (P + longest), 3, heads, dim]; the first P are the prompt's.
    """
    q, k, v = qkv.unflatten(0, (s.rows, -1)).permute(2, 0, 3, 1, 4)
    q = q[:, :, width:]
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=s.mask)
    return out.transpose(1, 2).flatten(2).flatten(0, 1)


@lru_cache(maxsize=256)
def prefix_mask(prompt: int, width: int) -> Tensor:
    """[width, prompt + width], 0 or -inf: all of the prompt, and itself up to now."""
    own = torch.full((width, width), -torch.inf).triu(1)
    return torch.cat([torch.zeros(width, prompt), own], 1)


def pack(
    prompts: Tensor,
    group: Tensor,
    tokens: Tensor,
    length: Tensor,
    buckets: int | None = None,
) -> Packed:
    """Lay a mini-batch out flat.

    Shape: prompts [U, P]; group [B], each row's prompt; tokens [B, T], padded on the
    right; length [B]. A row of one token feeds none: its prompt predicts it. `buckets`
    None takes as many as pay.
    """
    if buckets is None:
        buckets = min(max(len(tokens) // BUCKET_ROWS, 1), BUCKETS)
    n_prompts, width = prompts.shape
    order = torch.argsort(length, descending=True, stable=True)
    fed = (length[order] - 1).clamp(min=0)
    start = fed.cumsum(0) - fed
    row = torch.repeat_interleave(fed)
    time = torch.arange(len(row)) - start[row]
    offset = n_prompts * width
    segments, slots, where = _segments(
        fed, start + offset, group[order], prompts, buckets
    )
    prompt_time = torch.arange(width).repeat_interleave(n_prompts)
    source = order[row]
    place = torch.zeros(tokens.shape, dtype=torch.long)
    filled = (length > 0).nonzero()[:, 0]
    place[filled, 0] = 1 + filled
    place[source, time + 1] = 1 + len(tokens) + torch.arange(len(row))
    return Packed(
        torch.cat([prompts.t().flatten(), tokens[source, time]]),
        torch.cat([prompt_time, width + time]),
        tokens[source, time + 1],
        (n_prompts, width),
        segments,
        slots,
        where[row] + time,
        place,
    )


def _segments(
    fed, start, group, prompts, buckets
) -> tuple[list[Segment], Tensor, Tensor]:
    """Cut rows (longest first) into buckets: they, their slots, where rows begin."""
    n_prompts, width = prompts.shape
    prompt_slots = torch.arange(n_prompts)[:, None] + n_prompts * torch.arange(width)
    segments, slots, where, begin = [], [], torch.zeros_like(fed), 0
    live = int((fed > 0).sum())
    for rows in torch.arange(live).tensor_split(buckets if live >= buckets else 1):
        if not len(rows):
            continue
        first, last = int(rows[0]), int(rows[-1]) + 1
        longest = int(fed[first])
        time = torch.arange(longest)
        own = start[first:last, None] + time
        own = torch.where(time < fed[first:last, None], own, 0)  # never read back
        slots.append(torch.cat([prompt_slots[group[first:last]], own], 1).flatten())
        segments.append(Segment(len(rows), longest, prefix_mask(width, longest)))
        where[first:last] = begin + longest * torch.arange(last - first)
        begin += own.numel()
    return segments, torch.cat(slots) if slots else start[:0], where


def log_prob(
    model: Decoder,
    prompts: Tensor,
    group: Tensor,
    tokens: Tensor,
    length: Tensor,
    *,
    temperature: float = 1.0,
    buckets: int | None = None,
) -> Tensor:
    """Log-probability in nats of every response token, 0 where padded; differentiable.

    Shape: prompts [U, P] distinct prompts; group [B], which of them each row answers;
    tokens [B, T]; length [B], EOS counted -> [B, T].
    """
    plan = pack(prompts, group, tokens, length, buckets)
    n_prompts, width = plan.prompts
    hidden = model(plan.ids, plan.position, plan.attend)
    # only the last prompt token and the response tokens predict something
    logits = model.logits(hidden[n_prompts * (width - 1) :]) / temperature
    first = logits[:n_prompts].log_softmax(-1)[group, tokens[:, 0]]
    rest = -F.cross_entropy(logits[n_prompts:], plan.target, reduction="none")
    known = torch.cat([first.new_zeros(1), first, rest])
    return F.embedding(plan.place, known[:, None]).squeeze(-1)
