"""The `seed` recipe's policy: linear in eight features, softmax over six candidates.

A candidate of length L is L pseudo-tokens that share one log-probability, so the token
weighting of DAPO applies to it. Left out: the question; this policy never sees it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from dapo_lib.candidate.seed_task import FEATURES, SLOTS, SeedTable
from dapo_lib.errors import expect
from dapo_lib.rollout import Prompts, Rollout


class SeedPolicy:
    """softmax(features . weight), weights [S, 8] from zero, float64, one row a lane.

    `refreshes` counts how often the old policy was replaced after the start.
    """

    def __init__(self, table: SeedTable) -> None:
        self.table = table
        shape = (table.lanes, len(FEATURES))
        self.weight = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
        self.old = self.weight.detach().clone()
        self.refreshes = -1  # the loop's first refresh is the start itself

    def refresh(self) -> None:
        """Make the current weights the old policy."""
        self.old = self.weight.detach().clone()
        self.refreshes += 1

    def sample(
        self,
        prompts: Prompts,
        group_size: int,
        generator: Sequence[np.random.Generator],
    ) -> Rollout:
        """group_size *different* candidates a prompt, from the old policy.

        Shape: prompts * group_size rows, at most 4 pseudo-tokens each; the token id is
        the slot. Raises ``ValueError`` on a group size outside 2..6.
        """
        expect(2 <= group_size <= SLOTS, "group_size", group_size, f"2 to {SLOTS}")
        log_old = self._log_policy(prompts.lane, prompts.index, self.old)
        slots = [
            generator[lane].choice(SLOTS, group_size, replace=False, p=p)
            for lane, p in zip(
                prompts.lane.tolist(), log_old.exp().numpy(), strict=True
            )
        ]
        slot = torch.from_numpy(np.concatenate(slots))[:, None]
        index, group_id, lane, log_old = (
            x.repeat_interleave(group_size, 0)
            for x in (prompts.index, prompts.group_id, prompts.lane, log_old)
        )
        length = self.table.length[lane, index, slot[:, 0]]
        mask = torch.arange(int(self.table.length.max())) < length[:, None]
        return Rollout(
            index=index,
            group_id=group_id,
            lane=lane,
            tokens=slot.expand(mask.shape),
            mask=mask,
            length=length,
            truncated=torch.zeros_like(length, dtype=torch.bool),
            log_prob_old=torch.where(mask, log_old.gather(1, slot), 0.0),
        )

    def log_prob(self, rollout: Rollout, weight: Tensor | None = None) -> Tensor:
        """[B, T] nats: the candidate's log-probability on each of its pseudo-tokens.

        `weight` [S, 8] asks of other weights than the current ones.
        """
        weight = self.weight if weight is None else weight
        log_pi = self._log_policy(rollout.lane, rollout.index, weight)
        return log_pi.gather(1, rollout.tokens)

    def kl_reference(self, rollout: Rollout) -> Tensor:
        """[B] nats: KL(uniform || pi) over the six candidates of each row's problem."""
        log_pi = self._log_policy(rollout.lane, rollout.index, self.weight)
        return -math.log(SLOTS) - log_pi.mean(-1)

    def _log_policy(self, lane: Tensor, index: Tensor, weight: Tensor) -> Tensor:
        return log_policy(self.table.features[lane, index], weight[lane][:, None])

    def parameters(self) -> Iterable[Tensor]:
        """The weights."""
        return [self.weight]

    def state_dict(self) -> dict[str, Tensor]:
        """Current and old weights, and the number of refreshes."""
        return {
            "weight": self.weight.detach().clone(),
            "old": self.old.clone(),
            "refreshes": torch.tensor(self.refreshes),
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """The inverse of `state_dict`; keeps the parameter that an optimiser holds."""
        with torch.no_grad():
            self.weight.copy_(state["weight"])
        self.old = state["old"].clone()
        self.refreshes = int(state["refreshes"])


def log_policy(features: Tensor, weight: Tensor) -> Tensor:
    """Log-probabilities in nats, [..., 6] from features [..., 6, 8].

    Shape: weight [..., 1, 8], broadcast over the candidates.
    """
    return torch.log_softmax((features * weight).sum(-1), dim=-1)
