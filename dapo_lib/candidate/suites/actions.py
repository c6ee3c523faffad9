"""Policies over a small set of whole responses, many seeds side by side as lanes.

A lane is one seed: its own generator, weights and loss. A lane's run equals
the run of that seed alone. A response of length L is L tokens that share one
log-probability, so that lengths weigh as they do for a language model. Left out: tokens
that differ from each other; trie.py has those.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from dapo_lib.candidate.lanes import Lanes
from dapo_lib.rollout import Prompts, Rollout, rule_reward


@dataclass(frozen=True)
class Table:
    """N prompts with K possible responses each.

    Shape: correct [N, K] 0/1 (int64); length [N, K] tokens >= 1 (int64); allowed [N] of
    prompts that may be drawn, or None for all.
    """

    correct: Tensor
    length: Tensor
    allowed: Tensor | None = None


class ActionPolicy:
    """softmax over K responses a prompt; a subclass says what the logits are.

    `weight` [lanes, ...] float64 is all there is to learn.
    """

    def __init__(self, weight: Tensor, length: Tensor) -> None:
        self.weight = weight.to(torch.float64).clone().requires_grad_()
        self.old = self.weight.detach().clone()
        self.length = length

    def logits(self, weight: Tensor, index: Tensor, lane: Tensor) -> Tensor:
        """[B, K] logits of prompts `index` [B] in lanes `lane` [B]."""
        raise NotImplementedError

    def probabilities(self, index: Tensor, lane: Tensor) -> Tensor:
        """[B, K] under the current weights, without gradient."""
        with torch.no_grad():
            return self.logits(self.weight, index, lane).softmax(-1)

    def refresh(self) -> None:
        """Make the current weights the old policy."""
        self.old = self.weight.detach().clone()

    def sample(self, prompts: Prompts, group_size: int, generator: Lanes) -> Rollout:
        """group_size independent responses a prompt, from the old policy.

        Shape: [prompts * group_size] rows; a token's id is the number of its response.
        """
        log_old = self.logits(self.old, prompts.index, prompts.lane).log_softmax(-1)
        u = generator.uniform(prompts.lane, group_size)
        # inverse of the cumulative distribution; the clamp guards a sum below 1
        below = log_old.exp().cumsum(-1)[:, None, :] <= u[:, :, None]
        action = below.sum(-1).clamp(max=log_old.shape[-1] - 1).reshape(-1)
        index = prompts.index.repeat_interleave(group_size)
        length = self.length[index, action]
        mask = torch.arange(int(length.max())) < length[:, None]
        chosen = log_old.repeat_interleave(group_size, 0).gather(1, action[:, None])
        return Rollout(
            index=index,
            group_id=prompts.group_id.repeat_interleave(group_size),
            lane=prompts.lane.repeat_interleave(group_size),
            tokens=torch.where(mask, action[:, None], 0),
            mask=mask,
            length=length,
            truncated=torch.zeros_like(length, dtype=torch.bool),
            log_prob_old=torch.where(mask, chosen, 0.0),
        )

    def log_prob(self, rollout: Rollout) -> Tensor:
        """[B, T] nats: the response's log-probability on each of its tokens."""
        logits = self.logits(self.weight, rollout.index, rollout.lane)
        chosen = logits.log_softmax(-1).gather(1, rollout.tokens[:, :1])
        return chosen.expand(rollout.mask.shape)

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


class TabularPolicy(ActionPolicy):
    """One logit for each response of each prompt: weight [lanes, N, K].

    Shape: start [N, K] logits, length [N, K].
    """

    def __init__(self, start: Tensor, length: Tensor, lanes: int) -> None:
        super().__init__(start.expand(lanes, *start.shape), length)

    def logits(self, weight: Tensor, index: Tensor, lane: Tensor) -> Tensor:
        """[B, K]: looked up."""
        return weight[lane, index]


class LinearPolicy(ActionPolicy):
    """Logits linear in features of one response each: weight [lanes, F], from zero.

    Shape: features [N, K, F], length [N, K].
    """

    def __init__(self, features: Tensor, length: Tensor, lanes: int) -> None:
        super().__init__(torch.zeros(lanes, features.shape[-1]), length)
        self.features = features.to(torch.float64)

    def logits(self, weight: Tensor, index: Tensor, lane: Tensor) -> Tensor:
        """[B, K]: features times weight."""
        return (self.features[index] @ weight[lane][:, :, None]).squeeze(-1)


class ActionTask:
    """Draws prompts uniformly with replacement and grades them from the table: +1 / -1.

    `draws` counts prompts so far: the next group id.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        n = len(table.correct)
        self.allowed = torch.arange(n) if table.allowed is None else table.allowed
        self.draws = 0

    def draw(self, need: Tensor, generator: Lanes) -> Prompts:
        """need [lanes] prompts a lane, lane after lane."""
        lane = torch.arange(len(need)).repeat_interleave(need)
        place = generator.uniform(lane, 1)[:, 0] * len(self.allowed)
        group_id = torch.arange(self.draws, self.draws + len(lane))
        self.draws += len(lane)
        return Prompts(self.allowed[place.long()], group_id, lane)

    def grade(self, rollout: Rollout) -> Rollout:
        """Look up `correct`; the rule reward is 2 correct - 1. [B] each."""
        correct = self.table.correct[rollout.index, rollout.tokens[:, 0]]
        return rollout.graded(correct, rule_reward(correct))
