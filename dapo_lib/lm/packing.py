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

BUCKETS = 4


class Segment(NamedTuple):
    """Rows of similar length: slots of their queries [R, W] and keys [R, P + W]."""

    query: Tensor
    key: Tensor
    mask: Tensor


class Packed(NamedTuple):
    """A mini-batch as flat tokens and the plan of who attends to whom.

    Shape: ids, position [tokens]; target [tokens - U * P]; back, where each response
    token is found in the padded outputs of all segments; place [B, T], where each
    response token's log-probability is found in [0 | first tokens | targets].
    """

    ids: Tensor
    position: Tensor
    target: Tensor
    prompts: tuple[int, int]
    segments: list[Segment]
    back: Tensor
    place: Tensor

    def attend(self, layer: int, qkv: Tensor) -> Tensor:
        """Causal attention inside prompts, and from responses to prompt and self."""
        n_prompts, width = self.prompts
        q, k, v = qkv.unbind(1)
        own = (x[: n_prompts * width].unflatten(0, (width, -1)) for x in (q, k, v))
        own = (x.permute(1, 2, 0, 3) for x in own)
        out = F.scaled_dot_product_attention(*own, is_causal=True)
        flat = [out.permute(2, 0, 1, 3).flatten(2).flatten(0, 1)]
        if self.segments:
            q, k, v = (x.flatten(1) for x in (q, k, v))
            heads = qkv.shape[2]
            parts = [segment_attention(s, q, k, v, heads) for s in self.segments]
            flat.append(F.embedding(self.back, torch.cat(parts)))
        return torch.cat(flat)


def segment_attention(s: Segment, q: Tensor, k: Tensor, v: Tensor, heads: int):
    """Gather a bucket, attend, and return its padded outputs [R * W, width]."""
    gathered = (
        F.embedding(index, x).unflatten(-1, (heads, -1)).transpose(1, 2)
        for index, x in ((s.query, q), (s.key, k), (s.key, v))
    )
    out = F.scaled_dot_product_attention(*gathered, attn_mask=s.mask)
    return out.transpose(1, 2).flatten(2).flatten(0, 1)


@lru_cache(maxsize=256)
def prefix_mask(prompt: int, width: int) -> Tensor:
    """[width, prompt + width] bool: all of the prompt, and itself up to now."""
    own = torch.ones(width, width, dtype=torch.bool).tril()
    return torch.cat([torch.ones(width, prompt, dtype=torch.bool), own], 1)


def pack(
    prompts: Tensor,
    group: Tensor,
    tokens: Tensor,
    length: Tensor,
    buckets: int = BUCKETS,
) -> Packed:
    """Lay a mini-batch out flat.

    Shape: prompts [U, P]; group [B], each row's prompt; tokens [B, T], padded on the
    right; length [B]. A row of one token feeds none: its prompt predicts it.
    """
    n_prompts, width = prompts.shape
    order = torch.argsort(length, descending=True, stable=True)
    fed = (length[order] - 1).clamp(min=0)
    start = fed.cumsum(0) - fed
    row = torch.repeat_interleave(fed)
    time = torch.arange(len(row)) - start[row]
    offset = n_prompts * width
    segments, where = _segments(fed, start + offset, group[order], prompts, buckets)
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
        where[row] + time,
        place,
    )


def _segments(fed, start, group, prompts, buckets) -> tuple[list[Segment], Tensor]:
    """Cut rows (longest first) into buckets; where each row begins in the outputs."""
    n_prompts, width = prompts.shape
    prompt_slots = torch.arange(n_prompts)[:, None] + n_prompts * torch.arange(width)
    segments, where, begin = [], torch.zeros_like(fed), 0
    live = int((fed > 0).sum())
    for rows in torch.arange(live).tensor_split(buckets if live >= buckets else 1):
        if not len(rows):
            continue
        first, last = int(rows[0]), int(rows[-1]) + 1
        longest = int(fed[first])
        time = torch.arange(longest)
        own = start[first:last, None] + time
        own = torch.where(time < fed[first:last, None], own, 0)  # never read back
        key = torch.cat([prompt_slots[group[first:last]], own], 1)
        segments.append(Segment(own, key, prefix_mask(width, longest)))
        where[first:last] = begin + longest * torch.arange(last - first)
        begin += own.numel()
    return segments, where


def log_prob(
    model: Decoder,
    prompts: Tensor,
    group: Tensor,
    tokens: Tensor,
    length: Tensor,
    *,
    temperature: float = 1.0,
    buckets: int = BUCKETS,
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
