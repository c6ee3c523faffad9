"""What every token task shares: a problem table, a data cursor, grading, a control.

Left out: what a problem is. A task fills the table, says which responses are right and
writes demonstrations for the warm start.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from dapo_lib.errors import expect
from dapo_lib.lm.tasks.vocabulary import Vocabulary
from dapo_lib.rollout import Prompts, Rollout, rule_reward


class Demonstrations(NamedTuple):
    """Supervised sequences, cut at the length cap.

    Shape: prompts [n, P]; tokens [n, T], padded on the right; length [n], in tokens.
    """

    prompts: Tensor
    tokens: Tensor
    length: Tensor


class TokenTask:
    """Problems drawn one after the other from a table that a seed fixes.

    The prompts that a run sees depend on `seed` alone, never on what the policy does:
    two arms with one seed walk the same table, and `cursor` (problems drawn so far) is
    all that a resumed run needs. The table wraps round. Raises ``ValueError`` where
    l_max is shorter than any answer.
    """

    name: ClassVar[str]
    vocabulary: ClassVar[Vocabulary]
    prompt_length: ClassVar[int]
    shortest_answer: ClassVar[int]

    def __init__(self, seed: int = 0, *, l_max: int = 24, size: int = 16384) -> None:
        wanted = f"at least {self.shortest_answer}, the shortest answer of {self.name}"
        expect(l_max >= self.shortest_answer, "l_max", l_max, wanted)
        expect(size >= 1, "size", size, "at least 1 problem")
        self.l_max, self.seed, self.cursor = l_max, seed, 0
        generator = torch.Generator().manual_seed(seed)
        self.prompts, self.answers = self.problems(size, generator)

    def problems(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """n problems: prompt ids [n, P] and reference answers [n]."""
        raise NotImplementedError

    def answer(self, tokens: Tensor, length: Tensor) -> Tensor:
        """The answer that a response ends in, as a number; -1 where there is none [B].

        Shape: tokens [B, T], padded on the right; length [B], EOS counted.
        """
        raise NotImplementedError

    def is_right(self, answer: Tensor, reference: Tensor) -> Tensor:
        """Which answers are right, given the reference of each problem; all [B]."""
        return answer == reference

    def demonstrations(self, n: int, generator, **mixture) -> Demonstrations:
        """n supervised sequences of the kind that `mixture` describes."""
        raise NotImplementedError

    def behaviour(self, rollout: Rollout) -> dict[str, float]:
        """Shares that tell what the policy does, for figures; task by task."""
        return {}

    def draw(self, need: Tensor, generator: Any = None) -> Prompts:
        """The next problems of the table. Shape: need [1], one lane.

        `generator` is not used: the order is fixed by the task's seed.
        """
        expect(len(need) == 1, "need", tuple(need.shape), "shape [1], one lane")
        ids = torch.arange(self.cursor, self.cursor + int(need[0]))
        self.cursor += len(ids)
        return Prompts(ids % len(self.prompts), ids, torch.zeros_like(ids))

    def grade(self, rollout: Rollout) -> Rollout:
        """`correct` 0/1 and `reward` +1/-1 (Eq 7); a truncated response is wrong."""
        answer = self.answer(rollout.tokens, rollout.length)
        right = self.is_right(answer, self.answers[rollout.index])
        correct = (right & ~rollout.truncated).long()
        return rollout.graded(correct, rule_reward(correct))

    def state_dict(self) -> dict[str, int]:
        """What a resumed run needs: the data cursor."""
        return {"cursor": self.cursor}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """The inverse of `state_dict`."""
        self.cursor = int(state["cursor"])


class CoinFlip:
    """A control: the same prompts, the reward is a fair coin; only clipping acts.

    The coin of a response depends on the seed, its group and its place in the group, so
    that a resumed run flips the same coins.
    """

    def __init__(self, task: TokenTask) -> None:
        self.task = task

    def __getattr__(self, name: str) -> Any:
        return getattr(self.task, name)

    def grade(self, rollout: Rollout) -> Rollout:
        """Random `correct`, independent of the tokens."""
        first = int(rollout.group_id[0])
        seed = self.task.seed * 1_000_003 + first + 1
        coins = torch.Generator().manual_seed(seed)
        correct = torch.randint(2, (len(rollout),), generator=coins)
        return rollout.graded(correct, rule_reward(correct))
