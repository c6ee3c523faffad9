"""Questions as a task of the one loop: prompts in a shuffled order, graded as text.

Left out: what a question is and where it comes from; see data/questions.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dapo_lib.data.order import drawn
from dapo_lib.data.questions import Question
from dapo_lib.errors import expect
from dapo_lib.rollout import Prompts, Rollout, rule_reward
from dapo_lib.verifier import verify


class QuestionTask:
    """Draws questions without repeats until all were seen; the verifier grades.

    `decode` turns token ids into text, special tokens left out. A truncated response is
    graded as it stands: an answer can come before the cut. Raises ``ValueError``
    without a question.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        decode: Any,
        *,
        mode: str = "auto",
        seed: int = 0,
    ) -> None:
        expect(len(questions) > 0, "questions", 0, "at least one")
        self.questions, self.decode = list(questions), decode
        self.mode, self.seed, self.cursor = mode, seed, 0

    def draw(self, need: Tensor, generator: Any = None) -> Prompts:
        """The next questions; every pass over them has an order of its own."""
        expect(len(need) == 1, "need", tuple(need.shape), "shape [1], one lane")
        cursor, count, seed = self.cursor, int(need[0]), self.seed * 1_000_003
        self.cursor += count
        return drawn(cursor, count, len(self.questions), lambda epoch: seed + epoch)

    def grade(self, rollout: Rollout) -> Rollout:
        """`correct` 0/1, `reward` +1/-1 (Eq 7), `valid` where the reference is read."""
        verdicts = [
            verify(
                self.decode(tokens[:length]),
                self.questions[row].answer,
                mode=self.mode,
            )
            for tokens, length, row in zip(
                rollout.tokens.tolist(),
                rollout.length.tolist(),
                rollout.index.tolist(),
                strict=True,
            )
        ]
        correct = torch.tensor([int(bool(v.correct)) for v in verdicts])
        valid = torch.tensor([v.gradable for v in verdicts])
        return rollout.graded(correct, rule_reward(correct), valid)

    def behaviour(self, rollout: Rollout) -> dict[str, float]:
        """Nothing beyond what every task reports."""
        return {}

    def state_dict(self) -> dict[str, int]:
        """What a resumed run needs: the data cursor."""
        return {"cursor": self.cursor}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """The inverse of `state_dict`."""
        self.cursor = int(state["cursor"])
