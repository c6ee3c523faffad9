"""The enumerable policy: softmax over six candidates, linear in their features.

A candidate of length L is L pseudo-tokens that share one log-probability, so lengths
weigh as they do for a language model; what is longer than `l_max` is cut and has no
end. All seeds train side by side, a lane each. Left out: tokens that differ in
probability.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import log

import torch
from torch import Tensor

from dapo_lib.candidate.lanes import Lanes
from dapo_lib.candidate.table import SLOTS
from dapo_lib.errors import expect
from dapo_lib.rollout import Prompts, Rollout


class CandidatePolicy:
    """softmax(features . weight), weight [lanes, F] float64 from zero.

    Shape: features [N, 6, F] standardised, length [N, 6] tokens. A token's id is its
    candidate's slot. Raises ``ValueError`` on shapes that do not match and l_max < 1.
    """

    def __init__(
        self, features: Tensor, length: Tensor, *, l_max: int, lanes: int = 1
    ) -> None:
        shape = tuple(length.shape)
        expect(
            features.shape[:2] == length.shape, "length", shape, "[N, 6] as features"
        )
        expect(l_max >= 1, "l_max", l_max, "a number of tokens >= 1")
        self.features = features.to(torch.float64)
        self.length = length
        self.l_max = l_max
        self.masks = torch.ones(l_max + 1, l_max, dtype=torch.bool).tril(-1)
        size = (lanes, features.shape[-1])
        self.weight = torch.zeros(size, dtype=torch.float64, requires_grad=True)
        self.old = self.weight.detach().clone()

    def refresh(self) -> None:
        """Make the current weights the old policy."""
        self.old = self.weight.detach().clone()

    def sample(self, prompts: Prompts, group_size: int, generator: Lanes) -> Rollout:
        """group_size independent candidates a prompt, from the old policy.

        Shape: prompts * group_size rows, rows of a prompt adjacent.
        """
        log_old = self._log_softmax(self.old, prompts.index, prompts.lane)
        drawn = generator.uniform(prompts.lane, group_size)
        # inverse of the cumulative distribution; the clamp guards a sum below 1
        slot = torch.searchsorted(log_old.exp().cumsum(-1), drawn, right=True)
        slot.clamp_(max=SLOTS - 1)
        chosen = log_old.gather(1, slot).view(-1, 1)
        drawn_by = torch.stack([prompts.index, prompts.group_id, prompts.lane])
        index, group_id, lane = drawn_by.repeat_interleave(group_size, 1)
        slot = slot.view(-1, 1)
        full = self.length[index, slot[:, 0]]
        length = full.clamp(max=self.l_max)
        mask = self.masks.index_select(0, length)
        return Rollout(
            index=index,
            group_id=group_id,
            lane=lane,
            tokens=slot.expand(mask.shape),
            mask=mask,
            length=length,
            truncated=full > self.l_max,
            log_prob_old=chosen * mask,
        )

    def log_prob(self, rollout: Rollout) -> Tensor:
        """[B, T] nats: a candidate's log-probability, on each of its tokens."""
        # rows of a group share six logits: compute them once a group
        _, group, size = torch.unique_consecutive(
            rollout.group_id, return_inverse=True, return_counts=True
        )
        first = size.cumsum(0) - size
        log_pi = self._log_softmax(
            self.weight, rollout.index[first], rollout.lane[first]
        )
        chosen = log_pi.index_select(0, group).gather(1, rollout.tokens[:, :1])
        return chosen.expand(rollout.mask.shape)

    def _log_softmax(self, weight: Tensor, index: Tensor, lane: Tensor) -> Tensor:
        """[N, 6] log-probabilities of problems `index` in lanes `lane`."""
        features = self.features.index_select(0, index)
        logits = torch.bmm(features, weight.index_select(0, lane)[:, :, None])
        return logits[:, :, 0].log_softmax(-1)

    def parameters(self) -> Iterable[Tensor]:
        """The weights of all lanes."""
        return [self.weight]

    def state_dict(self) -> dict[str, Tensor]:
        """Current and old weights."""
        return {"weight": self.weight.detach().clone(), "old": self.old.clone()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """The inverse of `state_dict`; keeps the parameter that an optimiser holds."""
        with torch.no_grad():
            self.weight.copy_(state["weight"])
        self.old = state["old"].clone()


@dataclass(frozen=True)
class Exact:
    """Quantities of a policy by enumeration, means over problems.

    Shape: each [lanes]. `greedy` is the accuracy of the most likely candidate (the
    first slot wins a tie), `expected_accuracy` the mean probability of gold; `kl` to
    uniform and `entropy` in nats (they add up to ln 6); `expected_length` in tokens,
    uncut.
    """

    greedy: Tensor
    expected_accuracy: Tensor
    kl: Tensor
    entropy: Tensor
    expected_length: Tensor


def evaluate(weight: Tensor, features: Tensor, gold: Tensor, length: Tensor) -> Exact:
    """Every quantity of :class:`Exact`, without sampling.

    Shape: weight [lanes, F], features [N, 6, F], gold [N], length [N, 6].
    """
    with torch.no_grad():
        logits = weight @ features.reshape(-1, features.shape[-1]).T
        log_pi = logits.view(len(weight), -1, SLOTS).log_softmax(-1)
        pi = log_pi.exp()
        right = (pi.argmax(-1) == gold).double()
        entropy = -(pi * log_pi).sum(-1).mean(-1)
        return Exact(
            right.mean(-1),
            pi[:, torch.arange(len(gold)), gold].mean(-1),
            log(SLOTS) - entropy,
            entropy,
            (pi * length).sum(-1).mean(-1),
        )
