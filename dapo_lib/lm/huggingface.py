"""A Hugging Face causal language model as a policy of the one loop (extra ``hf``).

Any model that ``AutoModelForCausalLM`` can build, on any device; prompts may differ in
length (they are padded on the left). Rollouts live on the CPU, whatever the model's
device: the loop then needs no other code. Left out: speed; our own decoder's packing
and compaction are not used, since another model's attention is its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from dapo_lib.errors import expect
from dapo_lib.metrics import entropy
from dapo_lib.rollout import Prompts, Rollout, concatenate

PromptIds = Callable[[Tensor], list[list[int]]]  # rows of the problem table -> ids


class HuggingFacePolicy:
    """Samples from and scores with a transformers model; no dropout.

    `prompt_ids` gives the token ids of some rows of the task's problem table. Several
    EOS ids are allowed. `rows` caps the responses sampled in one forward pass. `top_p`
    samples from the most probable tokens alone; `log_prob` and what `sample` records
    stay those of the whole distribution, so that it is for evaluation. With
    `dtype` the passes run under autocast, the weights stay as they are: a learning rate
    of 1e-6 is below the rounding of bfloat16 weights. Raises ``ValueError`` on no EOS,
    where pad is an EOS, and on float16, whose gradients would need scaling.
    """

    def __init__(
        self,
        model: Any,
        prompt_ids: PromptIds,
        *,
        l_max: int,
        eos: Sequence[int],
        pad: int,
        temperature: float = 1.0,
        top_p: float = 1.0,
        rows: int | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        expect(len(eos) > 0, "eos", list(eos), "at least one end-of-sequence id")
        expect(pad not in eos, "pad", pad, "another id than the EOS ids")
        expect(l_max >= 1, "l_max", l_max, "at least 1 token")
        expect(temperature > 0, "temperature", temperature, "a number > 0")
        expect(0 < top_p <= 1, "top_p", top_p, "a share in (0, 1]")
        expect(rows is None or rows >= 1, "rows", rows, "at least 1 response")
        wanted = "float32 or bfloat16: float16 needs its gradients scaled"
        expect(dtype != torch.float16, "dtype", "float16", wanted)
        self.rows, self.dtype = rows, dtype
        self.model, self.prompt_ids = model.eval(), prompt_ids
        self.l_max, self.pad = l_max, pad
        self.temperature, self.top_p = temperature, top_p
        self.eos = torch.tensor(list(eos))
        # transformers 5 renamed the argument
        known = inspect.signature(model.forward).parameters
        self.cache = "cache" if "cache" in known else "past_key_values"

    def refresh(self) -> None:
        """Nothing: old log-probabilities are recorded by `sample`."""

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    @torch.no_grad()
    def sample(self, prompts: Prompts, group_size: int, generator: Any) -> Rollout:
        """group_size responses per prompt, rows of a prompt adjacent; not graded."""
        each = (prompts.index, prompts.group_id, prompts.lane)
        columns = [x.repeat_interleave(group_size) for x in each]
        draw = self._generator(generator)
        parts = [
            self._sample(*some, draw)
            for some in zip(
                *(c.split(self.rows or len(c)) for c in columns), strict=True
            )
        ]
        return parts[0] if len(parts) == 1 else concatenate(parts)

    def _generator(self, generator: Any) -> Any:
        """The run's generator; off the CPU one that it seeds, so that a run resumes."""
        if generator is None or self.device.type == "cpu":
            return generator
        seed = int(torch.randint(2**62, (1,), generator=generator))
        return torch.Generator(self.device).manual_seed(seed)

    def _sample(
        self, index: Tensor, group_id: Tensor, lane: Tensor, generator: Any
    ) -> Rollout:
        ids, seen = self._left_padded(index)
        open_rows = torch.ones(len(index), dtype=torch.bool, device=self.device)
        eos = self.eos.to(self.device)
        columns, cache = [], None
        for _ in range(self.l_max):
            logits, cache = self._next(ids, seen, cache)
            log_p = (logits / self.temperature).log_softmax(-1)
            likely = nucleus(log_p.exp(), self.top_p)
            chosen = torch.multinomial(likely, 1, generator=generator)
            token = torch.where(open_rows, chosen[:, 0], self.pad)
            old = log_p.gather(1, chosen)[:, 0]
            nats = entropy(logits, self.temperature)
            columns.append((token, open_rows, old * open_rows, nats * open_rows))
            open_rows = open_rows & ~torch.isin(token, eos)
            if not open_rows.any():
                break
            ids = token[:, None]
            seen = torch.cat([seen, torch.ones_like(seen[:, :1])], 1)
        tokens, mask, old, nats = (
            torch.stack(c, 1).cpu() for c in zip(*columns, strict=True)
        )
        length = mask.sum(1)
        return Rollout(
            index, group_id, lane, tokens, mask, length, open_rows.cpu(), old, nats
        )

    def log_prob(self, rollout: Rollout) -> Tensor:
        """[B, T] log-probabilities in nats, current weights, differentiable."""
        ids, seen = self._left_padded(rollout.index)
        whole = torch.cat([ids, rollout.tokens.to(self.device)], 1)
        seen = torch.cat([seen, rollout.mask.long().to(self.device)], 1)
        with self._autocast():
            out = self.model(
                input_ids=whole,
                attention_mask=seen,
                position_ids=positions(seen),
                use_cache=False,
            )
        logits = out.logits[:, ids.shape[1] - 1 : -1].float() / self.temperature
        chosen = whole[:, ids.shape[1] :, None]
        picked = logits.log_softmax(-1).gather(2, chosen)[..., 0].cpu()
        return torch.where(rollout.mask, picked, 0.0)

    def _autocast(self) -> Any:
        on = self.dtype != torch.float32
        return torch.autocast(self.device.type, self.dtype, enabled=on)

    def _next(self, ids: Tensor, seen: Tensor, cache: Any) -> tuple[Tensor, Any]:
        """Float32 logits of the next token [B, V], and the grown cache."""
        with self._autocast():
            out = self.model(
                input_ids=ids,
                attention_mask=seen,
                position_ids=positions(seen)[:, -ids.shape[1] :],
                use_cache=True,
                **{self.cache: cache},
            )
        return out.logits[:, -1].float(), out[self.cache]

    def _left_padded(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Prompt ids [B, P] and attention mask [B, P], padded on the left."""
        rows = self.prompt_ids(index)
        width = max(map(len, rows))
        ids = [[self.pad] * (width - len(r)) + list(r) for r in rows]
        seen = [[0] * (width - len(r)) + [1] * len(r) for r in rows]
        return torch.tensor(ids).to(self.device), torch.tensor(seen).to(self.device)

    def parameters(self) -> Iterable[Tensor]:
        """The model's weights that need a gradient."""
        return [p for p in self.model.parameters() if p.requires_grad]

    def state_dict(self) -> dict[str, Tensor]:
        """The model's weights by name, tied ones once."""
        return {k: v.detach() for k, v in self.model.named_parameters()}

    def load_state_dict(self, state: dict[str, Tensor]) -> Any:
        """The inverse of `state_dict`. Raises ``RuntimeError`` on other names."""
        mine = {k for k, _ in self.model.named_parameters()}
        if mine != set(state):
            raise RuntimeError(f"other weights: {sorted(mine ^ set(state))[:3]}")
        return self.model.load_state_dict(state, strict=False)


def nucleus(probability: Tensor, top_p: float) -> Tensor:
    """The fewest most probable tokens whose mass reaches `top_p`; the others are 0.

    Shape: [B, V] -> [B, V], not scaled to a sum of 1. At least one token stays; 1 keeps
    every token. Source: Holtzman et al. 2020 (arXiv 1904.09751).

    >>> nucleus(torch.tensor([[0.5, 0.125, 0.25, 0.125]]), 0.7)
    tensor([[0.5000, 0.0000, 0.2500, 0.0000]])
    """
    if top_p == 1:
        return probability
    ranked, order = probability.sort(dim=-1, descending=True, stable=True)
    before = ranked.cumsum(-1) - ranked  # the mass of all that is more probable
    kept = ranked.where(before < top_p, 0.0)
    return torch.zeros_like(probability).scatter(-1, order, kept)


def positions(seen: Tensor) -> Tensor:
    """Position of every token, counted from each row's first real one. [B, T].

    >>> positions(torch.tensor([[0, 1, 1], [1, 1, 1]]))
    tensor([[0, 0, 1],
            [0, 1, 2]])
    """
    return (seen.cumsum(1) - 1).clamp(min=0)
