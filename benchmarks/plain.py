"""The floor in plain torch: skip what need not be done, and nothing cleverer.

The sampler's log-probabilities serve as the old ones, finished rows leave the decoding
batch, a mini-batch is cut into four buckets of similar length. Every row carries its
own prompt and its padding; attention is ``scaled_dot_product_attention``.
Left out: sharing of prompts, packing, a cache that is written in place.
"""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.ours import ALGORITHM, Ours
from dapo_lib.lm.model import Decoder
from dapo_lib.objective import count_denominator, policy_loss
from dapo_lib.rollout import Rollout
from dapo_lib.train import advantages, clip_gradients, minibatches

BUCKETS = 4


class Plain(Ours):
    """The same work on weights, prompts and random numbers of its own."""

    def sample(self) -> Rollout:
        """One rollout, graded."""
        n, size = self.schedule.prompts_per_rollout, self.schedule.group_size
        drawn = self.task.draw(torch.tensor([n]))
        vocabulary = self.task.vocabulary
        tokens, old, length = generate(
            self.policy.model,
            self.task.prompts[drawn.index].repeat_interleave(size, 0),
            self.schedule.l_max,
            vocabulary.eos_id,
            vocabulary.pad_id,
            self.state.generator,
            never_ends=self.work.full,
        )
        each = (drawn.index, drawn.group_id, drawn.lane)
        rollout = Rollout(
            *(x.repeat_interleave(size) for x in each),
            tokens=tokens,
            mask=torch.arange(tokens.shape[1]) < length[:, None],
            length=length,
            truncated=tokens.gather(1, length[:, None] - 1)[:, 0] != vocabulary.eos_id,
            log_prob_old=old,
        )
        return self.task.grade(rollout)

    def train(self, rollout: Rollout) -> None:
        """The updates of one rollout, a bucket of rows at a time."""
        advantage = advantages(ALGORITHM, self.schedule, rollout)
        for rows in minibatches(self.schedule, rollout, self.state.generator):
            self.state.optimiser.zero_grad(set_to_none=True)
            whole = count_denominator(rollout.mask[rows], ALGORITHM.reduction)
            order = torch.argsort(rollout.length[rows], descending=True, stable=True)
            for part in order.tensor_split(BUCKETS):
                few = rollout.rows(rows[part])
                width = int(few.length.max())
                loss = policy_loss(
                    log_prob(self.policy.model, self.task.prompts[few.index], few),
                    few.log_prob_old[:, :width],
                    advantage[rows[part]],
                    few.mask[:, :width],
                    eps_low=ALGORITHM.eps_low,
                    eps_high=ALGORITHM.eps_high,
                    reduction=ALGORITHM.reduction,
                    denominator=whole[part],
                ).loss
                loss.backward()
            clip_gradients(self.schedule, self.policy)
            self.state.optimiser.step()


@torch.no_grad()
def generate(
    model: Decoder,
    prompts: Tensor,
    l_max: int,
    eos: int,
    pad: int,
    generator: torch.Generator,
    *,
    never_ends: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens [B, T], log-probabilities [B, T] and lengths [B] of one response a row."""
    n, width = prompts.shape
    tokens, old = torch.full((n, l_max), pad), torch.zeros(n, l_max)
    length, rows = torch.zeros(n, dtype=torch.long), torch.arange(n)
    cache: list[tuple[Tensor, Tensor]] = [(torch.empty(0),) * 2] * model.config.layers
    ids, position = prompts, torch.arange(width).expand(n, -1)
    for at in range(l_max):
        attend = partial(_cached, cache, len(ids))
        hidden = model(ids.flatten(), position.flatten(), attend)
        logits = model.logits(hidden.unflatten(0, ids.shape)[:, -1])
        if never_ends:
            logits[:, eos] = -torch.inf
        log_p = logits.log_softmax(-1)
        chosen = torch.multinomial(log_p.exp(), 1, generator=generator)
        tokens[rows, at], old[rows, at] = chosen[:, 0], log_p.gather(1, chosen)[:, 0]
        length[rows] += 1
        alive = chosen[:, 0] != eos
        if not alive.any():
            break
        if not alive.all():
            cache[:] = [(k[alive], v[alive]) for k, v in cache]
            rows, chosen = rows[alive], chosen[alive]
        ids, position = chosen, torch.full_like(chosen, width + at)
    longest = int(length.max())
    return tokens[:, :longest], old[:, :longest], length


def _cached(cache: list, rows: int, layer: int, qkv: Tensor) -> Tensor:
    """Attend to what is cached and to oneself; the cache grows by concatenation."""
    q, k, v = qkv.unflatten(0, (rows, -1)).permute(2, 0, 3, 1, 4)
    first = not cache[layer][0].numel()
    if not first:
        k, v = (torch.cat(pair, 2) for pair in zip(cache[layer], (k, v), strict=True))
    cache[layer] = (k, v)
    out = F.scaled_dot_product_attention(q, k, v, is_causal=first)
    return out.transpose(1, 2).flatten(2).flatten(0, 1)


def log_prob(model: Decoder, prompts: Tensor, rollout: Rollout) -> Tensor:
    """Log-probabilities [B, T] of padded whole sequences; differentiable."""
    longest = int(rollout.length.max())
    tokens = rollout.tokens[:, :longest]
    whole = torch.cat([prompts, tokens[:, :-1]], 1)
    rows, size = whole.shape

    def attend(layer: int, qkv: Tensor) -> Tensor:
        q, k, v = qkv.unflatten(0, (rows, size)).permute(2, 0, 3, 1, 4)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return out.transpose(1, 2).flatten(2).flatten(0, 1)

    hidden = model(whole.flatten(), torch.arange(size).repeat(rows), attend)
    predicting = hidden.unflatten(0, (rows, size))[:, prompts.shape[1] - 1 :]
    logits = model.logits(predicting.flatten(0, 1))
    flat = F.cross_entropy(logits, tokens.flatten(), reduction="none")
    return -flat.view(rows, longest) * rollout.mask[:, :longest]
