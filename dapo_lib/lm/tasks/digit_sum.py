"""The digit-sum chain: add digits modulo 10, writing the running sums, or guess.

Prompt ``3+8+5=`` in a fixed field; a full chain is ``1,6#6$``. Left out: any check of
the chain itself. Only the end of a response is graded, so that shortcuts pay.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dapo_lib.errors import expect
from dapo_lib.lm.tasks.task import Demonstrations, TokenTask
from dapo_lib.lm.tasks.vocabulary import Vocabulary
from dapo_lib.rollout import Rollout

MAX_DIGITS = 10
DITHER_HAZARD = 0.06  # chance to stop dithering after each `~`


class DigitSum(TokenTask):
    """Last digit of the sum of 2 to 10 digits; a full chain of n digits has 2n tokens.

    The separator is ``,`` or ``;`` at will. `~` is dithering, ``?`` and ``!`` are spare
    symbols that no data contain.

    >>> task = DigitSum(seed=0)
    >>> task.vocabulary.decode(task.prompts[0]), int(task.answers[0])
    ('9+1+3+7+4+7+4+8+7+5=', 5)
    """

    name = "digit_sum"
    vocabulary = Vocabulary("0123456789+=,;#~$_?!")
    prompt_length = 2 * MAX_DIGITS
    shortest_answer = 3  # `#a$`

    def problems(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """n prompts [n, 20], left-justified, and the last digits of their sums [n]."""
        digits, count = self._digits(n, generator)
        return self._prompts(digits, count), self._sums(digits)[rows(n), count - 1]

    def answer(self, tokens: Tensor, length: Tensor) -> Tensor:
        """The digit of a response that ends in ``#``, a digit, EOS; and has one ``#``.

        Shape: tokens [B, T], padded on the right; length [B] -> [B], -1 for no answer.
        """
        v = self.vocabulary
        at = torch.arange(tokens.shape[1])
        marks = ((tokens == v.id("#")) & (at < length[:, None])).sum(1)
        padded = torch.nn.functional.pad(tokens, (3, 0), value=v.pad_id)
        mark, digit, last = padded.gather(1, length[:, None] + torch.arange(3)).T
        ends = (mark == v.id("#")) & (digit < 10) & (last == v.eos_id)
        return torch.where((marks == 1) & ends, digit, -1)

    def demonstrations(
        self, n: int, generator: torch.Generator, *, rho: float, delta: float
    ) -> Demonstrations:
        """Sequences that go on with chance rho after each step, else guess a digit.

        `delta` is the chance to dither before the answer. Shape: see
        :class:`Demonstrations`, T = l_max; what is longer is cut there.
        """
        for name, value in (("rho", rho), ("delta", delta)):
            expect(0 <= value <= 1, name, value, "a chance in [0, 1]")
        digits, count = self._digits(n, generator)
        go_on = torch.rand(n, MAX_DIGITS, generator=generator) < rho
        steps = torch.minimum(go_on.long().cumprod(1).sum(1), count - 1)
        guess = torch.randint(10, (n,), generator=generator)
        sums = self._sums(digits)
        answer = torch.where(steps == count - 1, sums[rows(n), count - 1], guess)
        dither = self._dither(n, delta, generator)
        return self._write(digits, count, sums, steps, dither, answer, generator)

    def behaviour(self, rollout: Rollout) -> dict[str, float]:
        """Shares of responses that dither, and that write the whole chain."""
        v = self.vocabulary
        dithers = ((rollout.tokens == v.id("~")) & rollout.mask).any(1)
        count = (self.prompts[rollout.index] < 10).sum(1)
        at = torch.arange(0, rollout.tokens.shape[1], 2)
        is_digit = ((rollout.tokens < 10) & rollout.mask)[:, ::2]
        chain = torch.where(at < 2 * (count - 1)[:, None], is_digit, True).all(1)
        long = rollout.length >= 2 * count
        return {
            "dither": float(dithers.double().mean()),
            "full_chain": float((chain & long).double().mean()),
        }

    def _digits(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Digits [n, 10], zero past each problem's count [n] of 2 to 10."""
        count = torch.randint(2, MAX_DIGITS + 1, (n,), generator=generator)
        digits = torch.randint(10, (n, MAX_DIGITS), generator=generator)
        return torch.where(torch.arange(MAX_DIGITS) < count[:, None], digits, 0), count

    def _sums(self, digits: Tensor) -> Tensor:
        return digits.cumsum(1) % 10

    def _prompts(self, digits: Tensor, count: Tensor) -> Tensor:
        v, at = self.vocabulary, torch.arange(self.prompt_length)
        symbols = torch.where(at % 2 == 0, digits[:, at // 2], v.id("+"))
        last = 2 * count[:, None] - 1
        symbols = torch.where(at == last, v.id("="), symbols)
        return torch.where(at > last, v.pad_id, symbols)

    def _dither(self, n: int, delta: float, generator: torch.Generator) -> Tensor:
        """Number of `~` of each sequence [n]: 0, or geometric from 1 on."""
        chosen = torch.rand(n, generator=generator) < delta
        u = torch.rand(n, generator=generator).clamp(min=1e-6)
        geometric = 1 + (u.log() / math.log(1 - DITHER_HAZARD)).floor().long()
        return torch.where(chosen, geometric, 0)

    def _write(self, digits, count, sums, steps, dither, answer, generator):
        v, n = self.vocabulary, len(digits)
        at = torch.arange(self.l_max)
        chain = (2 * steps - 1).clamp(min=0)[:, None]  # tokens of the chain
        mark = chain + dither[:, None]
        separators = torch.tensor([v.id(","), v.id(";")])
        picked = torch.randint(2, (n, self.l_max), generator=generator)
        step = sums[:, (at // 2 + 1).clamp(max=MAX_DIGITS - 1)]
        tokens = torch.where(at % 2 == 0, step, separators[picked])
        tokens = torch.where(at >= chain, v.id("~"), tokens)
        tokens = torch.where(at == mark, v.id("#"), tokens)
        tokens = torch.where(at == mark + 1, answer[:, None], tokens)
        tokens = torch.where(at == mark + 2, v.eos_id, tokens)
        tokens = torch.where(at > mark + 2, v.pad_id, tokens)
        length = (mark[:, 0] + 3).clamp(max=self.l_max)
        return Demonstrations(self._prompts(digits, count), tokens, length)


def rows(n: int) -> Tensor:
    """Row numbers 0 to n-1, for picking one column a row."""
    return torch.arange(n)
