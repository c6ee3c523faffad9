"""What a linear policy can reach at best, and what a leak would give away.

Published beside every accuracy. Left out: any model that a policy could not be; the
ceiling has the policy's own features and shape, and only learns from labels.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dapo_lib.candidate.table import SLOTS, Table

RIDGE = 1e-4  # keeps the optimum finite where a feature decides alone


def supervised(features: Tensor, gold: Tensor, iterations: int = 60) -> Tensor:
    """Weights [F] of the softmax regression of gold on features [N, 6, F], by L-BFGS.

    The features are to be standardised. Deterministic; starts from zero.
    """
    weights = torch.zeros(features.shape[-1], dtype=features.dtype, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [weights], max_iter=iterations, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        optimiser.zero_grad()
        value = torch.nn.functional.cross_entropy(features @ weights, gold)
        value = value + RIDGE * weights.square().sum()
        value.backward()
        return value

    optimiser.step(loss)
    return weights.detach()


def greedy_accuracy(scores: Tensor, gold: Tensor) -> float:
    """Share of problems whose first best slot is gold.

    Shape: scores [N, 6], gold [N].
    """
    return float((scores.argmax(-1) == gold).double().mean())


def leak_only(table: Table) -> float:
    """Accuracy of "shares most equations with the others", ties at expected value.

    No policy may see this: it says how much comparing candidates would give away.
    """
    return float(leak_wins(table).mean())


def leak_wins(table: Table) -> Tensor:
    """Chance, per problem, that the hub of the shared equations is gold: [N]."""
    wins = []
    for lines, gold in zip(table.texts, table.gold.tolist(), strict=True):
        sets = [set(line.split(" #### ")[0].split("; ")) for line in lines]
        score = [
            sum(len(sets[i] & sets[j]) for j in range(SLOTS) if j != i)
            for i in range(SLOTS)
        ]
        best = [i for i, s in enumerate(score) if s == max(score)]
        wins.append((gold in best) / len(best))
    return torch.tensor(wins, dtype=torch.float64)
