"""The bench's task: two-digit additions in 12 characters, answered after some dots.

Left out: skill. What the bench needs is a realistic distribution of lengths.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dapo_lib.lm.model import Decoder, ModelConfig
from dapo_lib.lm.tasks import Demonstrations, TokenTask, Vocabulary
from dapo_lib.lm.warm_start import Stage, fit

SYMBOLS = "0123456789+=?:\n. ,;QA" + "abcdefghijklmnopqrstuvwxyz" + "BCDEFGHIJKLMNOP"
MEAN_DOTS = 13.0  # geometric; mean length 17, 4 % reach 48 tokens


class Addition(TokenTask):
    """``Q:37+58=?\\nA:`` answered by dots, the sum and EOS."""

    name = "addition"
    vocabulary = Vocabulary(SYMBOLS + "$_")
    prompt_length = 12
    shortest_answer = 3

    def problems(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """n prompts [n, 12] and sums [n]."""
        a, b = torch.randint(10, 100, (2, n), generator=generator)
        v = self.vocabulary
        text = v.encode("Q:00+00=?\nA:")
        prompts = torch.tensor(text).repeat(n, 1)
        for column, digit in ((2, a // 10), (3, a % 10), (5, b // 10), (6, b % 10)):
            prompts[:, column] = digit
        return prompts, a + b

    def answer(self, tokens: Tensor, length: Tensor) -> Tensor:
        """The two digits before EOS as a number, -1 where there are none."""
        padded = torch.nn.functional.pad(tokens, (3, 0), value=self.vocabulary.pad_id)
        tens, ones, last = padded.gather(1, length[:, None] + torch.arange(3)).T
        ends = (tens < 10) & (ones < 10) & (last == self.vocabulary.eos_id)
        return torch.where(ends, 10 * tens + ones, -1)

    def is_right(self, answer: Tensor, reference: Tensor) -> Tensor:
        """The last two digits of the sum."""
        return answer == reference % 100

    def demonstrations(self, n: int, generator: torch.Generator) -> Demonstrations:
        """Dots in geometric number, the sum, EOS; cut at l_max."""
        v = self.vocabulary
        prompts, answers = self.problems(n, generator)
        u = torch.rand(n, generator=generator).clamp(min=1e-6)
        dots = (u.log() / math.log(1 - 1 / MEAN_DOTS)).floor().long()[:, None]
        at = torch.arange(self.l_max)
        tokens = torch.where(at < dots, v.id("."), v.pad_id)
        tens, ones = (answers // 10 % 10)[:, None], (answers % 10)[:, None]
        ends = (tens, ones, torch.full_like(ones, v.eos_id))
        for offset, symbol in enumerate(ends):
            tokens = torch.where(at == dots + offset, symbol, tokens)
        return Demonstrations(prompts, tokens, (dots[:, 0] + 3).clamp(max=self.l_max))


def checkpoint(config: ModelConfig, l_max: int, steps: int = 250) -> Decoder:
    """A model after a short supervised fit, so that lengths are realistic."""
    model = Decoder(config, torch.Generator().manual_seed(0))
    task = Addition(l_max=l_max, size=1)
    stage = Stage(mixture=((1.0, {}),), steps=steps, sequences=64, lr=2e-3, lr_end=1e-4)
    fit(model, task, stage, torch.Generator().manual_seed(1))
    return model
