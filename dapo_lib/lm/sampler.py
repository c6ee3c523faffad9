"""Sampling with a key/value cache: each prompt once, finished rows leave the batch.

Prompt keys stay one copy a group and are read by all its live rows in one product;
a row's own keys live in a time-major cache [layer, time, row, width]. A finished row is
replaced by the last live one. Left out: ragged prompts, top-k, top-p, beams.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from dapo_lib.errors import expect
from dapo_lib.lm.model import Decoder

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
    """Keys and values of prompts (one copy a group) and of live rows (time-major)."""

    def __init__(self, model: Decoder, group_size: int, n: int, steps: int) -> None:
        c = model.config
        self.heads, self.n_groups = c.heads, n
        self.scale = (c.width // c.heads) ** -0.5
        shape = (c.layers, steps, n * group_size, c.width)
        self.keys, self.values = torch.empty(shape), torch.empty(shape)
        self.prompt_keys: list[Tensor] = []  # each [N, heads, dim, P]
        self.prompt_values: list[Tensor] = []  # each [N, heads, P, dim]
        self.group = torch.arange(n).repeat_interleave(group_size)
        self.time = 0
        self._seat()

    def _seat(self) -> None:
        """Give every live row a seat in a table of groups x largest live group."""
        count = torch.bincount(self.group, minlength=self.n_groups)
        order = torch.argsort(self.group, stable=True)
        begin = count.cumsum(0) - count
        rank = torch.empty_like(order)
        rank[order] = torch.arange(len(order)) - begin[self.group[order]]
        self.seats = (self.n_groups, int(count.max()))
        self.seat = self.group * self.seats[1] + rank
        self.sitter = torch.zeros(self.n_groups * self.seats[1], dtype=torch.long)
        self.sitter[self.seat] = torch.arange(len(order))

    def prefill(self, layer: int, qkv: Tensor) -> Tensor:
        """Causal attention inside prompts [N * P], keeping their keys and values."""
        q, k, v = qkv.unflatten(0, (self.n_groups, -1)).permute(2, 0, 3, 1, 4)
        self.prompt_keys.append(k.mT.contiguous())
        self.prompt_values.append(v.contiguous())
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return out.transpose(1, 2).flatten(2).flatten(0, 1)

    def decode(self, layer: int, qkv: Tensor) -> Tensor:
        """One new token of every live row reads its prompt, its past and itself."""
        n, now = len(qkv), self.time + 1
        flat = qkv.flatten(2)
        self.keys[layer, self.time, :n] = flat[:, 1]
        self.values[layer, self.time, :n] = flat[:, 2]
        q = flat[:, 0] * self.scale
        past = (self.keys[layer, :now, :n] * q).unflatten(-1, (self.heads, -1)).sum(-1)
        prompt = self._to_prompts(q, self.prompt_keys[layer])
        width = prompt.shape[-1]
        # [n, heads, P + now]
        weight = torch.cat([prompt, past.permute(1, 2, 0)], -1).softmax(-1)
        out = self._from_prompts(weight[..., :width], self.prompt_values[layer])
        own = weight[..., width:].permute(2, 0, 1)[..., None]
        values = self.values[layer, :now, :n].unflatten(-1, (self.heads, -1))
        return out + (own * values).sum(0).flatten(1)

    def _to_prompts(self, q: Tensor, keys: Tensor) -> Tensor:
        """Scores [n, heads, P] of every row against its group's prompt."""
        seated = F.embedding(self.sitter, q).view(*self.seats, self.heads, -1)
        scores = seated.transpose(1, 2) @ keys
        return scores.transpose(1, 2).flatten(0, 1)[self.seat]

    def _from_prompts(self, weight: Tensor, values: Tensor) -> Tensor:
        """Weighted prompt values [n, width]; weight [n, heads, P]."""
        seated = weight[self.sitter].unflatten(0, self.seats)
        out = seated.transpose(1, 2) @ values
        return out.transpose(1, 2).flatten(2).flatten(0, 1)[self.seat]

    def keep(self, alive: Tensor) -> Tensor:
        """Drop finished rows: the last live rows move into the holes; the order [n].

        Costs one row's copy a finished row; nothing else moves.
        """
        n = int(alive.sum())
        order = torch.arange(len(alive))[:n].clone()
        holes = (~alive[:n]).nonzero()[:, 0]
        movers = n + alive[n:].nonzero()[:, 0]
        order[holes] = movers
        self.keys[:, : self.time, holes] = self.keys[:, : self.time, movers]
        self.values[:, : self.time, holes] = self.values[:, : self.time, movers]
        self.group = self.group[order]
        self._seat()
        return order


@torch.no_grad()
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
    cache = Cache(model, group_size, n_prompts, max(l_max - 1, 1))
    position = torch.arange(width).repeat(n_prompts)
    hidden = model(prompts.flatten(), position, cache.prefill)
    hidden = hidden.unflatten(0, (n_prompts, width))[:, -1]
    logits = model.logits(hidden).repeat_interleave(group_size, 0)
    rows = torch.arange(n_prompts * group_size)
    record = _Record(len(rows), l_max, pad)
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
        cache.time += 1
    return record.finish(eos)


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
