"""The candidate setting's task: which problems are drawn, and which answer is right.

Left out: an epoch. Problems are drawn with replacement, each lane from its own stream.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dapo_lib.candidate.lanes import Lanes
from dapo_lib.errors import expect
from dapo_lib.rollout import Prompts, Rollout, rule_reward


class CandidateTask:
    """Uniform draws from N problems; reward +1 for gold, -1 otherwise.

    A response that was cut never reached its answer: it is wrong, whatever it was going
    to say. `draws` counts the prompts so far; it is the next group id.
    """

    def __init__(self, gold: Tensor) -> None:
        expect(
            gold.ndim == 1 and len(gold) > 0, "gold", tuple(gold.shape), "[N], N >= 1"
        )
        self.gold = gold
        self.reward = rule_reward(torch.arange(2))  # of a wrong answer, of a right one
        self.draws = 0

    def draw(self, need: Tensor, generator: Lanes) -> Prompts:
        """need [lanes] prompts for each lane, lane after lane."""
        lane = torch.repeat_interleave(need)
        place = generator.uniform(lane, 1)[:, 0] * len(self.gold)
        ids = torch.arange(self.draws, self.draws + len(lane))
        self.draws += len(lane)
        return Prompts(place.long(), ids, lane)

    def grade(self, rollout: Rollout) -> Rollout:
        """`correct` [B] 1 where a candidate is gold and whole; `reward` [B] +-1."""
        right = rollout.tokens[:, 0] == self.gold.index_select(0, rollout.index)
        correct = (right & ~rollout.truncated).long()
        return rollout.graded(correct, self.reward.index_select(0, correct))

    def state_dict(self) -> dict[str, int]:
        """What a resumed run needs: the next group id."""
        return {"draws": self.draws}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """The inverse of `state_dict`."""
        self.draws = int(state["draws"])
