"""The order in which a data set is drawn: all of it, shuffled, then all of it again.

Where a run stands in it is one number, the cursor: nothing else has to be saved. Left
out: tasks that make their problems; they have no order.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from dapo_lib.rollout import Prompts


def drawn(cursor: int, count: int, size: int, seed_of: Callable[[int], int]) -> Prompts:
    """`count` prompts of one lane from `cursor` on, of a data set of `size` rows.

    Group ids are the places in the endless order; every pass over the data has a
    permutation of its own, seeded by `seed_of` its number.

    >>> first, rest = drawn(0, 2, 4, int), drawn(2, 2, 4, int)
    >>> sorted([*first.index.tolist(), *rest.index.tolist()]), rest.group_id.tolist()
    ([0, 1, 2, 3], [2, 3])
    """
    ids = torch.arange(cursor, cursor + count)

    def order(epoch: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed_of(epoch))
        return torch.randperm(size, generator=generator)

    orders = {epoch: order(epoch) for epoch in torch.unique(ids // size).tolist()}
    rows = [int(orders[i // size][i % size]) for i in ids.tolist()]
    return Prompts(torch.tensor(rows).long(), ids, torch.zeros_like(ids))
