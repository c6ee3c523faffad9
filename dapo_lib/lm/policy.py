"""The tiny transformer as a policy of the one loop (train.py).

Left out: a copy of old weights. The old policy is the log-probabilities that were
recorded while sampling, so `refresh` has nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from dapo_lib.errors import expect
from dapo_lib.lm.model import Decoder
from dapo_lib.lm.packing import log_prob
from dapo_lib.lm.sampler import sample
from dapo_lib.lm.tasks import TokenTask
from dapo_lib.rollout import Prompts, Rollout


class LMPolicy:
    """Samples from and scores with a :class:`Decoder`, at one temperature.

    Raises ``ValueError`` where the model's vocabulary is not the task's.
    """

    def __init__(
        self, model: Decoder, task: TokenTask, *, temperature: float = 1.0
    ) -> None:
        size, wanted = model.config.vocabulary, len(task.vocabulary)
        expect(size == wanted, "vocabulary", size, f"{wanted}, as {task.name} has")
        expect(temperature > 0, "temperature", temperature, "a number > 0")
        self.model, self.task, self.temperature = model, task, temperature

    def refresh(self) -> None:
        """Nothing: old log-probabilities are recorded by `sample`."""

    def sample(
        self, prompts: Prompts, group_size: int, generator: torch.Generator
    ) -> Rollout:
        """group_size responses per prompt, rows of a prompt adjacent; not graded."""
        vocabulary = self.task.vocabulary
        out = sample(
            self.model,
            self.task.prompts[prompts.index],
            group_size,
            generator,
            l_max=self.task.l_max,
            eos=vocabulary.eos_id,
            pad=vocabulary.pad_id,
            temperature=self.temperature,
        )
        each = (prompts.index, prompts.group_id, prompts.lane)
        return Rollout(
            *(x.repeat_interleave(group_size) for x in each),
            tokens=out.tokens,
            mask=torch.arange(out.tokens.shape[1]) < out.length[:, None],
            length=out.length,
            truncated=out.truncated,
            log_prob_old=out.log_prob,
            entropy=out.entropy,
        )

    def log_prob(self, rollout: Rollout) -> Tensor:
        """[B, T] log-probabilities in nats under the current weights, differentiable.

        A prompt that several rows answer is computed once.
        """
        index, group = torch.unique(rollout.index, return_inverse=True)
        return log_prob(
            self.model,
            self.task.prompts[index],
            group,
            rollout.tokens,
            rollout.length,
            temperature=self.temperature,
        )

    def parameters(self) -> Iterable[Tensor]:
        """The model's weights."""
        return self.model.parameters()

    def state_dict(self) -> dict[str, Tensor]:
        """The model's weights by name."""
        return self.model.state_dict()

    def load_state_dict(self, state: dict[str, Tensor]) -> Any:
        """The inverse of `state_dict`."""
        return self.model.load_state_dict(state)
