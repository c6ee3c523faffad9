"""A Hugging Face causal language model as a policy of the one loop (extra ``hf``).

Any model that ``AutoModelForCausalLM`` can build; prompts may differ in length (they
are padded on the left). Left out: speed; our own decoder's packing and compaction are
not used, since another model's attention is its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from dapo_lib.errors import expect
from dapo_lib.metrics import entropy
from dapo_lib.rollout import Prompts, Rollout

PromptIds = Callable[[Tensor], list[list[int]]]  # rows of the problem table -> ids


class HuggingFacePolicy:
    """Samples from and scores with a transformers model; no dropout.

    `prompt_ids` gives the token ids of some rows of the task's problem table. Several
    EOS ids are allowed. Raises ``ValueError`` on no EOS, and where pad is an EOS.
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
    ) -> None:
        expect(len(eos) > 0, "eos", list(eos), "at least one end-of-sequence id")
        expect(pad not in eos, "pad", pad, "another id than the EOS ids")
        expect(l_max >= 1, "l_max", l_max, "at least 1 token")
        expect(temperature > 0, "temperature", temperature, "a number > 0")
        self.model, self.prompt_ids = model.eval(), prompt_ids
        self.l_max, self.pad, self.temperature = l_max, pad, temperature
        self.eos = torch.tensor(list(eos))
        # transformers 5 renamed the argument
        known = inspect.signature(model.forward).parameters
        self.cache = "cache" if "cache" in known else "past_key_values"

    def refresh(self) -> None:
        """Nothing: old log-probabilities are recorded by `sample`."""

    @torch.no_grad()
    def sample(self, prompts: Prompts, group_size: int, generator: Any) -> Rollout:
        """group_size responses per prompt, rows of a prompt adjacent; not graded."""
        each = (prompts.index, prompts.group_id, prompts.lane)
        index, group_id, lane = (x.repeat_interleave(group_size) for x in each)
        ids, seen = self._left_padded(index)
        open_rows = torch.ones(len(index), dtype=torch.bool)
        columns, cache = [], None
        for _ in range(self.l_max):
            logits, cache = self._next(ids, seen, cache)
            log_p = (logits / self.temperature).log_softmax(-1)
            chosen = torch.multinomial(log_p.exp(), 1, generator=generator)
            token = torch.where(open_rows, chosen[:, 0], self.pad)
            old = log_p.gather(1, chosen)[:, 0]
            nats = entropy(logits, self.temperature)
            columns.append((token, open_rows, old * open_rows, nats * open_rows))
            open_rows = open_rows & ~torch.isin(token, self.eos)
            if not open_rows.any():
                break
            ids = token[:, None]
            seen = torch.cat([seen, torch.ones_like(seen[:, :1])], 1)
        tokens, mask, old, nats = (
            torch.stack(c, 1) for c in zip(*columns, strict=True)
        )
        length = mask.sum(1)
        return Rollout(
            index, group_id, lane, tokens, mask, length, open_rows, old, nats
        )

    def log_prob(self, rollout: Rollout) -> Tensor:
        """[B, T] log-probabilities in nats, current weights, differentiable."""
        ids, seen = self._left_padded(rollout.index)
        whole = torch.cat([ids, rollout.tokens], 1)
        seen = torch.cat([seen, rollout.mask.long()], 1)
        out = self.model(
            input_ids=whole,
            attention_mask=seen,
            position_ids=positions(seen),
            use_cache=False,
        )
        logits = out.logits[:, ids.shape[1] - 1 : -1].float() / self.temperature
        picked = logits.log_softmax(-1).gather(2, rollout.tokens[..., None])[..., 0]
        return torch.where(rollout.mask, picked, 0.0)

    def _next(self, ids: Tensor, seen: Tensor, cache: Any) -> tuple[Tensor, Any]:
        """Float32 logits of the next token [B, V], and the grown cache."""
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
        return torch.tensor(ids), torch.tensor(seen)

    def parameters(self) -> Iterable[Tensor]:
        """The model's weights that need a gradient."""
        return [p for p in self.model.parameters() if p.requires_grad]

    def state_dict(self) -> dict[str, Tensor]:
        """The model's weights by name."""
        return self.model.state_dict()

    def load_state_dict(self, state: dict[str, Tensor]) -> Any:
        """The inverse of `state_dict`."""
        return self.model.load_state_dict(state)


def positions(seen: Tensor) -> Tensor:
    """Position of every token, counted from each row's first real one. [B, T].

    >>> positions(torch.tensor([[0, 1, 1], [1, 1, 1]]))
    tensor([[0, 0, 1],
            [0, 1, 2]])
    """
    return (seen.cumsum(1) - 1).clamp(min=0)
