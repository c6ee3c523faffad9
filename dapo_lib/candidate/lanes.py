"""Random numbers for many seeds at once: lane s draws what seed s alone would draw.

Each lane has one NumPy generator; its numbers are drawn in blocks and handed out in
order, so that taking from twenty lanes is one indexing operation. Left out: any
distribution but the uniform one; the policy inverts what it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dapo_lib.errors import expect

BLOCK = 4096  # uniform numbers drawn at a time and lane


class Lanes:
    """One stream of uniform numbers a lane.

    Raises ``ValueError`` without seeds.

    >>> both, alone = Lanes([3, 4]), Lanes([4])
    >>> pair = both.uniform(torch.tensor([0, 1, 1]), 2)
    >>> bool((pair[1:] == alone.uniform(torch.tensor([0, 0]), 2)).all())
    True
    """

    def __init__(self, seeds: Sequence[int]) -> None:
        expect(len(seeds) > 0, "seeds", list(seeds), "at least one seed")
        self.generators = [np.random.default_rng(seed) for seed in seeds]
        self._lay(np.stack([g.random(BLOCK) for g in self.generators]), 0)

    def _lay(self, block: np.ndarray, taken: np.ndarray | int) -> None:
        """Hold a block, of which each lane has taken so many numbers."""
        lanes, width = block.shape
        self.block = block
        self.end = np.arange(1, lanes + 1) * width
        self.next = self.end - width + taken  # where a lane goes on, in the flat block

    def __len__(self) -> int:
        return len(self.generators)

    def uniform(self, lane: Tensor, columns: int) -> Tensor:
        """The next `columns` numbers in [0, 1) of each row's lane, row after row.

        Shape: lane [N], sorted -> [N, columns] float64.
        """
        lane = lane.numpy()
        need = np.bincount(lane, minlength=len(self)) * columns
        if (self.next + need > self.end).any():
            self._draw_on(int(need.max()))
        self.next += need
        # rows of a lane lie together: its k-th row takes the lane's k-th numbers
        at = (self.next - need.cumsum())[lane] + np.arange(
            0, lane.size * columns, columns
        )
        if columns == 1:
            return torch.from_numpy(self.block.take(at))[:, None]
        return torch.from_numpy(self.block.take(at[:, None] + np.arange(columns)))

    @property
    def taken(self) -> np.ndarray:
        """How many numbers of the block each lane has taken."""
        return self.next - self.end + self.block.shape[1]

    def _draw_on(self, need: int) -> None:
        """Make room for `need` more numbers a lane; none that is drawn gets lost."""
        start = int(self.taken.min())  # a lane that took less keeps its rest
        fresh = [g.random(max(BLOCK, need)) for g in self.generators]
        taken = self.taken - start
        self._lay(np.concatenate([self.block[:, start:], fresh], axis=1), taken)

    def state_dict(self) -> dict[str, Any]:
        """All that a resumed run needs: generators, blocks, and how far they are."""
        return {
            "generators": [g.bit_generator.state for g in self.generators],
            "block": self.block.copy(),
            "taken": self.taken,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of `state_dict`."""
        for generator, saved in zip(self.generators, state["generators"], strict=True):
            generator.bit_generator.state = saved
        self._lay(state["block"].copy(), state["taken"])
