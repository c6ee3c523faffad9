"""Sampling with a key/value cache: each prompt once, finished rows leave the batch.

A finished row is replaced by the last live one. Left out: ragged prompts, top-k, top-p,
beams.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from dapo_lib.errors import expect
from dapo_lib.lm.model import Decoder

# torch.bmm leaves MKL for a loop of its own, 2 to 5 times slower, where one product has
# fewer multiplications than this
MKL_FROM = 400
ROOM = 8  # tokens of a response that the cache holds before it grows

Choose = Callable[[Tensor, torch.Generator], Tensor]


class Sampled(NamedTuple):
    """Responses, rows of a prompt adjacent; padded on the right to the longest.

    Shape: tokens [B, T]; log_prob, entropy [B, T] in nats at the sampling temperature,
    0 where padded; length [B], EOS counted; truncated [B], no EOS within l_max.
    """

    tokens: Tensor
    log_prob: Tensor
    entropy: Tensor
    length: Tensor
    truncated: Tensor


def by_inverse_cdf(probability: Tensor, generator: torch.Generator) -> Tensor:
    """One id a row: the distribution inverted at a uniform number. [n, V] -> [n]."""
    cdf = probability.cumsum(-1)
    u = torch.rand(len(cdf), 1, generator=generator, device=cdf.device) * cdf[:, -1:]
    return (cdf <= u).sum(-1).clamp(max=cdf.shape[1] - 1)


def by_exponential_race(probability: Tensor, generator: torch.Generator) -> Tensor:
    """One id a row, drawn number for number as ``torch.multinomial`` does. [n, V]."""
    waits = torch.empty_like(probability).exponential_(generator=generator)
    return (probability / waits).argmax(-1)


class Cache:
    """Keys and values of live rows, each row's in one piece: its prompt's, its own.

    Shape: keys and values, a layer each [B, heads, room, dim]. The prompt is computed
    once a group and copied to its rows, so that a step is two batched products a layer.
    The room doubles as responses grow, up to `longest`, for the rows still alive.
    """

    def __init__(
        self, model: Decoder, group_size: int, n_prompts: int, width: int, longest: int
    ) -> None:
        c = model.config
        dim = c.width // c.heads
        self.prompts, self.group_size = (n_prompts, width), group_size
        self.scale, self.filled = dim**-0.5, width
        self.least = -(-MKL_FROM // dim)
        self.longest = max(longest, self.least)
        room = min(max(width + ROOM, self.least), self.longest)
        shape = (n_prompts * group_size, c.heads, room, dim)
        self.keys = [torch.zeros(shape) for _ in range(c.layers)]
        self.values = [torch.zeros(shape) for _ in range(c.layers)]

    def prefill(self, layer: int, qkv: Tensor) -> Tensor:
        """Causal attention inside prompts [N * P], keeping their keys and values."""
        q, k, v = qkv.unflatten(0, self.prompts).permute(2, 0, 3, 1, 4)
        for kept, new in ((self.keys, k), (self.values, v)):
            groups = kept[layer].unflatten(0, (-1, self.group_size))
            groups[..., : self.filled, :] = new[:, None]
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return out.transpose(1, 2).flatten(2).flatten(0, 1)

    def decode(self, layer: int, qkv: Tensor) -> Tensor:
        """One new token of every live row reads its prompt, its past and itself."""
        n, now = len(qkv), self.filled + 1
        keys, values = self.keys[layer][:n], self.values[layer][:n]
        keys[:, :, self.filled], values[:, :, self.filled] = qkv[:, 1], qkv[:, 2]
        read = max(now, self.least)
        # each [n * heads, read, dim]
        keys, values = (x[:, :, :read].flatten(0, 1) for x in (keys, values))
        q = (qkv[:, 0] * self.scale).view(len(keys), 1, -1)
        score = torch.bmm(q, keys.mT)
        score[..., now:] = -torch.inf  # not written yet
        return torch.bmm(score.softmax(-1), values).view(n, -1)

    def advance(self, n: int) -> None:
        """Go on to the next token of the n live rows, with more room where it ends."""
        self.filled += 1
        room = self.keys[0].shape[2]
        more = min(room, self.longest - room)
        if self.filled < room or not more:
            return
        for kept in (self.keys, self.values):
            for layer, old in enumerate(kept):  # one by one: little stands twice
                kept[layer] = F.pad(old[:n], (0, 0, 0, more))

    def keep(self, alive: Tensor) -> Tensor:
        """Drop finished rows: the last live rows move into the holes; the order [n].

        Costs one row's copy a finished row; nothing else moves.
        """
        n = int(alive.sum())
        order = torch.arange(n)
        holes = (~alive[:n]).nonzero()[:, 0]
        movers = n + alive[n:].nonzero()[:, 0]
        order[holes] = movers
        for kept in (*self.keys, *self.values):
            kept.index_copy_(0, holes, kept.index_select(0, movers))
        return order


def sample(
    model: Decoder,
    prompts: Tensor,
    group_size: int,
    generator: torch.Generator,
    *,
    l_max: int,
    eos: int,
    pad: int,
    temperature: float = 1.0,
    choose: Choose = by_inverse_cdf,
    compact: bool = True,
) -> Sampled:
    """group_size responses to each of N prompts [N, P], at most l_max tokens each.

    `compact=False` keeps finished rows in the batch (their tokens are dropped), so that
    row i always reads the i-th random number. Raises ``ValueError`` where the model has
    too few positions and unless temperature > 0.
    """
    expect(temperature > 0, "temperature", temperature, "a number > 0")
    n_prompts, width = prompts.shape
    room = model.config.positions
    wanted = f"at most {room - width}, as the model has {room} positions"
    expect(width + l_max <= room, "l_max", l_max, wanted)
    record = _Record(n_prompts * group_size, l_max, pad)
    with torch.inference_mode():  # cheaper calls; the record is made outside it
        _decode(model, prompts, record, generator, eos, temperature, choose, compact)
    return record.finish(eos)


def _decode(model, prompts, record, generator, eos, temperature, choose, compact):
    """Fill the record, a token of every live row at a time."""
    n_prompts, width = prompts.shape
    l_max, n = record.tokens.shape
    cache = Cache(model, n // n_prompts, n_prompts, width, width + l_max - 1)
    position = torch.arange(width).repeat(n_prompts)
    hidden = model(prompts.flatten(), position, cache.prefill)
    hidden = hidden.unflatten(0, (n_prompts, width))[:, -1]
    logits = model.logits(hidden).repeat_interleave(n // n_prompts, 0)
    rows = torch.arange(n)
    for time in range(l_max):
        ids = record.write(time, rows, logits / temperature, choose, generator)
        alive = ids != eos
        if time + 1 == l_max or not alive[record.open[rows]].any():
            break
        record.open[rows] &= alive
        if compact and not alive.all():
            order = cache.keep(alive)
            ids, rows = ids[order], rows[order]
        at = torch.full_like(rows, width + time)
        logits = model.logits(model(ids, at, cache.decode))
        cache.advance(len(rows))


class _Record:
    """What was sampled, time-major [l_max, B], by original row."""

    def __init__(self, n: int, l_max: int, pad: int) -> None:
        self.tokens = torch.full((l_max, n), pad)
        self.log_prob, self.entropy = torch.zeros(l_max, n), torch.zeros(l_max, n)
        self.length = torch.zeros(n, dtype=torch.long)
        self.open = torch.ones(n, dtype=torch.bool)

    def write(self, time, rows, logits, choose, generator) -> Tensor:
        """Choose a token for every row in the batch; note it where the row is open."""
        log_p = logits.log_softmax(-1)
        p = log_p.exp()
        ids = choose(p, generator)
        fresh = self.open[rows]
        if fresh.all():
            fresh = slice(None)  # a view, as always in a compacted batch
        at = rows[fresh]
        self.tokens[time, at] = ids[fresh]
        self.log_prob[time, at] = log_p.gather(1, ids[:, None])[fresh, 0]
        self.entropy[time, at] = -(p * log_p).sum(-1)[fresh]
        self.length[at] += 1
        return ids

    def finish(self, eos: int) -> Sampled:
        """Batch-major, cut to the longest response."""
        width = int(self.length.max())
        parts = (self.tokens, self.log_prob, self.entropy)
        tokens, log_prob, entropy = (x[:width].t().contiguous() for x in parts)
        last = tokens.gather(1, self.length[:, None] - 1)[:, 0]
        return Sampled(tokens, log_prob, entropy, self.length, last != eos)
