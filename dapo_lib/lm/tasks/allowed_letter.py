"""Allowed letters: a habit that is right 60 %, beside a rare careful way that is surer.

The paper's Figure 2 in miniature, where the chain is looked up; where it adds, the
habit learns the answer. Left out: any reward for being careful; only the last letter is
graded.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dapo_lib.errors import expect
from dapo_lib.lm.tasks.task import Demonstrations, TokenTask
from dapo_lib.lm.tasks.vocabulary import Vocabulary
from dapo_lib.rollout import Rollout

LETTERS, MARKS, SEPARATORS = "vwxyz", "ABCDE", ",;:.-"
HABIT_FIRST_LETTER = 0.6  # the other four share the rest evenly


class AllowedLetter(TokenTask):
    """Four digits in 0..4; letters s, s+1, s+2 (mod 5) are right, s their sum mod 5.

    Habit: ``Jv$`` whatever the digits. Careful: a mark of five synonyms, the running
    sums each with a free separator, an allowed letter: ``B3,0;2.x$``.

    >>> task = AllowedLetter(seed=0)
    >>> task.vocabulary.decode(task.prompts[0]), int(task.answers[0])
    ('4430=', 1)
    """

    name = "allowed_letter"
    vocabulary = Vocabulary("01234=" + LETTERS + "J" + MARKS + SEPARATORS + "$_")
    prompt_length = 5
    shortest_answer = 2  # a letter and EOS

    def __init__(self, seed: int = 0, *, l_max: int = 12, size: int = 16384) -> None:
        super().__init__(seed, l_max=l_max, size=size)

    def problems(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """n prompts [n, 5] and where their chains end [n], 0 to 4."""
        digits = torch.randint(5, (n, 4), generator=generator)
        return self._prompts(digits), self.chain(digits)[:, -1]

    def chain(self, digits: Tensor) -> Tensor:
        """What a careful response writes: running sums modulo 5. Shape: [n, 4], both.

        The first column is the first digit itself, which is not written.
        """
        return digits.cumsum(1) % 5

    def answer(self, tokens: Tensor, length: Tensor) -> Tensor:
        """The letter before EOS, 0 to 4.

        Shape: tokens [B, T], padded on the right; length [B] -> [B], -1 for no answer.
        """
        v = self.vocabulary
        padded = torch.nn.functional.pad(tokens, (2, 0), value=v.pad_id)
        letter, last = padded.gather(1, length[:, None] + torch.arange(2)).T
        letter = letter - v.id(LETTERS[0])
        ends = (letter >= 0) & (letter < len(LETTERS)) & (last == v.eos_id)
        return torch.where(ends, letter, -1)

    def is_right(self, answer: Tensor, reference: Tensor) -> Tensor:
        """One of the three allowed letters; all [B]."""
        return (answer >= 0) & ((answer - reference) % 5 < 3)

    def demonstrations(
        self, n: int, generator: torch.Generator, *, careful: float
    ) -> Demonstrations:
        """Sequences, a share `careful` of them careful, the rest habit.

        Shape: see :class:`Demonstrations`, T = l_max.
        """
        expect(0 <= careful <= 1, "careful", careful, "a share in [0, 1]")
        wanted = "at least 9, the careful answer's length"
        expect(self.l_max >= 9, "l_max", self.l_max, wanted)
        v = self.vocabulary
        digits = torch.randint(5, (n, 4), generator=generator)
        is_careful = torch.rand(n, generator=generator) < careful
        tokens = torch.full((n, self.l_max), v.pad_id)
        tokens[:, :9] = self._careful(digits, generator)
        habit = torch.full_like(tokens, v.pad_id)
        habit[:, :3] = self._habit(n, generator)
        tokens = torch.where(is_careful[:, None], tokens, habit)
        length = torch.where(is_careful, 9, 3)
        return Demonstrations(self._prompts(digits), tokens, length)

    def behaviour(self, rollout: Rollout) -> dict[str, float]:
        """Share of careful responses, and of them the share that is right.

        Then the entropy in nats of the letter after ``J``. NaN where there are none.
        """
        v, first = self.vocabulary, rollout.tokens[:, 0]
        careful = (first >= v.id(MARKS[0])) & (first <= v.id(MARKS[-1]))
        habit = (first == v.id("J")) & (rollout.length > 1)
        out = {"careful": float(careful.double().mean()), "habit_entropy": float("nan")}
        if rollout.correct is not None:
            right = rollout.correct[careful].double()
            out["careful_right"] = float(right.mean())  # of nothing: NaN
        if rollout.entropy is not None and bool(habit.any()):
            out["habit_entropy"] = float(rollout.entropy[habit, 1].double().mean())
        return out

    def _prompts(self, digits: Tensor) -> Tensor:
        equals = torch.full((len(digits), 1), self.vocabulary.id("="))
        return torch.cat([digits, equals], 1)

    def _habit(self, n: int, generator: torch.Generator) -> Tensor:
        v = self.vocabulary
        rest = (1 - HABIT_FIRST_LETTER) / 4
        chances = torch.tensor([HABIT_FIRST_LETTER, rest, rest, rest, rest])
        letter = torch.multinomial(chances, n, replacement=True, generator=generator)
        columns = [torch.full((n,), v.id("J")), v.id(LETTERS[0]) + letter]
        return torch.stack([*columns, torch.full((n,), v.eos_id)], 1)

    def _careful(self, digits: Tensor, generator: torch.Generator) -> Tensor:
        v, n = self.vocabulary, len(digits)

        def pick(symbols: str, columns: int) -> Tensor:
            ids = torch.randint(len(symbols), (n, columns), generator=generator)
            return v.id(symbols[0]) + ids

        sums = self.chain(digits)
        tokens = torch.empty(n, 9, dtype=torch.long)
        tokens[:, :1] = pick(MARKS, 1)
        tokens[:, 1:7:2], tokens[:, 2:7:2] = sums[:, 1:], pick(SEPARATORS, 3)
        offset = torch.randint(3, (n,), generator=generator)
        tokens[:, 7] = v.id(LETTERS[0]) + (sums[:, 3] + offset) % 5
        tokens[:, 8] = v.eos_id
        return tokens


class LookupLetter(AllowedLetter):
    """The same, but a step looks the next number up in a table instead of adding.

    A sum modulo 5 can be learned at a glance, without the chain, from the reward alone.
    The table is a Latin square without order or grouping to exploit (it is neither
    commutative nor associative), so that only the chain leads there.

    >>> task = LookupLetter(seed=0)
    >>> task.chain(torch.tensor([[4, 4, 3, 0]])).tolist(), LookupLetter.TABLE[4][4]
    ([[4, 2, 1, 4]], 2)
    """

    name = "lookup_letter"
    TABLE = (
        (1, 2, 0, 3, 4),
        (4, 1, 2, 0, 3),
        (2, 4, 3, 1, 0),
        (0, 3, 4, 2, 1),
        (3, 0, 1, 4, 2),
    )

    def chain(self, digits: Tensor) -> Tensor:
        """Numbers looked up at (last number, next digit). Shape: [n, 4], both."""
        table = torch.tensor(self.TABLE)
        numbers = [digits[:, 0]]
        for column in digits[:, 1:].T:
            numbers.append(table[numbers[-1], column])
        return torch.stack(numbers, 1)
