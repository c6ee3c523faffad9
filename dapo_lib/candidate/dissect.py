"""What the `seed` recipe's numbers are made of: each fact of its page, computed.

Left out: intervals. The functions return counts and one value a seed; statistics.py in
`experiments` makes intervals of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import product

import numpy as np
import torch
from torch import Tensor

from dapo_lib.candidate.seed import SeedResult, Variant, run_seeds
from dapo_lib.candidate.seed_policy import log_policy
from dapo_lib.candidate.seed_task import (
    FEATURES,
    LEAKS,
    SLOTS,
    SeedTable,
    candidate_table,
)
from dapo_lib.data.gsm8k import Problem
from dapo_lib.errors import expect
from dapo_lib.kl import exact_kl

CHANCE = 1 / SLOTS
TWENTY = tuple(range(20))


@dataclass(frozen=True)
class Hits:
    """How many of `rows` problems an answer rule gets right."""

    right: int
    rows: int

    @property
    def accuracy(self) -> float:
        """The share, 0 to 1.

        >>> Hits(97, 128).accuracy
        0.7578125
        """
        return self.right / self.rows


def validation_table(
    problems_test: Sequence[Problem], seed: int = 42, rows: int | None = 128
) -> SeedTable:
    """The candidates that a run with this seed is scored on; rows=None takes all."""
    problems = problems_test[:rows]
    return candidate_table(problems, np.random.default_rng(seed + 1))


def gold_slots(table: SeedTable) -> tuple[int, ...]:
    """How many problems hold gold in each slot.

    The untrained policy is uniform, and argmax takes the first slot: its accuracy is
    entry 0 over the number of problems, by luck, while chance is exactly 1/6.
    """
    return tuple(table.correct[0].sum(0).tolist())


def leak_rule(table: SeedTable, leaks: Iterable[str] = LEAKS) -> Hits:
    """Answer by argmax(10 * integer + self_check), or by one of the two leaks alone.

    Nothing is trained. Raises ``BadInput`` on another name; without any leak the first
    slot wins.
    """
    weight = torch.zeros(len(FEATURES), dtype=torch.float64)
    for name in leaks:
        expect(name in LEAKS, "leaks", name, f"one of {', '.join(LEAKS)}")
        weight[FEATURES.index(name)] = 10.0 if name == "integer" else 1.0
    greedy = (table.features[0] @ weight).argmax(-1, keepdim=True)
    right = table.correct[0].gather(-1, greedy).sum()
    return Hits(int(right), len(table))


def filter_counts(results: Sequence[SeedResult]) -> dict[str, tuple[int, ...]]:
    """Of each run's groups, how many a filter would have dropped.

    ``constant``: std of the shaped reward is 0, the recipe's own test; it never fires,
    since four *different* candidates with a noisy process reward never tie.
    ``all_wrong`` and ``all_right``: DAPO's test, on correctness. ``steps``: all groups.
    """
    columns = {
        "constant": "constant_groups",
        "all_wrong": "all_wrong_groups",
        "all_right": "all_right_groups",
    }
    counts = {
        name: tuple(r.diagnostics[key] for r in results)
        for name, key in columns.items()
    }
    steps = tuple(r.config["schedule"]["rollouts"] for r in results)
    return counts | {"steps": steps}


def kl_directions(table: SeedTable, weight: Sequence[float]) -> dict[str, float]:
    """The two KLs to the uniform reference at these weights, and how they pull.

    The recipe's term pulls along ``kl_ref_pi``'s gradient, F^T (pi - ref); its table
    reports ``kl_pi_ref``, whose gradient is F^T pi (log(pi/ref) - KL). Both in nats;
    ``cosine`` has no unit and is 0 where a gradient vanishes. Source: closed form 13.
    """
    log_pi = log_policy(table.features[0], torch.tensor(weight, dtype=torch.float64))
    uniform = torch.full_like(log_pi, -float(np.log(SLOTS)))
    pi, kl = log_pi.exp(), exact_kl(log_pi, uniform)
    forward = _gradient(table, pi - CHANCE)
    reverse = _gradient(table, pi * (log_pi - uniform - kl[:, None]))
    cosine = torch.nn.functional.cosine_similarity(forward, reverse, dim=0)
    return {
        "kl_ref_pi": float(exact_kl(uniform, log_pi).mean()),
        "kl_pi_ref": float(kl.mean()),
        "norm_ref_pi": float(forward.norm()),
        "norm_pi_ref": float(reverse.norm()),
        "cosine": float(cosine),
    }


def _gradient(table: SeedTable, in_logits: Tensor) -> Tensor:
    """From [N, 6] in the logits to [8] in the weights, averaged over the problems."""
    return torch.einsum("nkf,nk->f", table.features[0], in_logits) / len(table)


def leak_grid(
    problems_train: Sequence[Problem],
    problems_test: Sequence[Problem],
    *,
    seeds: Sequence[int] = TWENTY,
    steps: int = 300,
    curve_every: int = 20,
) -> list[dict]:
    """Every choice of leaks removed x length noise removed, all seeds: for the widget.

    One dict a choice and seed, of plain numbers: `removed`, `equal_lengths`, `seed`,
    `rule` (accuracy of :func:`leak_rule` with the leaks that remain), `accuracy`,
    `accuracy_whole_test`, `expected_accuracy`, `kl_reference` and `curve`, pairs of
    step and accuracy.
    """
    choices = ((), ("integer",), ("self_check",), LEAKS)
    rows = []
    for removed, equal in product(choices, (False, True)):
        results = run_seeds(
            problems_train,
            problems_test,
            seeds=seeds,
            steps=steps,
            variant=Variant(removed, equal),
            curve_every=curve_every,
        )
        rows += [_row(result, problems_test) for result in results]
    return rows


def _row(result: SeedResult, problems_test: Sequence[Problem]) -> dict:
    variant, seed = result.config["variant"], result.config["seed"]
    left = [name for name in LEAKS if name not in variant["leaks"]]
    table = validation_table(problems_test, seed, result.config["validation_rows"])
    return {
        "removed": list(variant["leaks"]),
        "equal_lengths": variant["equal_lengths"],
        "seed": seed,
        "rule": leak_rule(table, left).accuracy,
        "accuracy": result.trained.accuracy,
        "accuracy_whole_test": result.whole_test.accuracy,
        "expected_accuracy": result.trained.expected_accuracy,
        "kl_reference": result.trained.kl_reference,
        "curve": [[step, scores.accuracy] for step, scores in result.curve],
    }


def dissect(
    problems_train: Sequence[Problem],
    problems_test: Sequence[Problem],
    *,
    seeds: Sequence[int] = TWENTY,
    steps: int = 300,
) -> dict:
    """All the facts at once, as plain numbers; lists have one entry a seed.

    The first four are of the published run (seed 42). Accuracies are greedy, on the
    validation rows; those on the whole test set end in ``_whole_test``.
    """
    runs = {
        name: run_seeds(
            problems_train, problems_test, seeds=seeds, steps=steps, variant=variant
        )
        for name, variant in {
            "published": Variant(),
            "leaks_removed": Variant(leaks=LEAKS),
            "equal_lengths": Variant(equal_lengths=True),
        }.items()
    }
    (run,) = run_seeds(problems_train, problems_test, seeds=[42], steps=steps)
    table = validation_table(problems_test)
    trained = Hits(round(run.trained.accuracy * len(table)), len(table))
    facts = {
        "gold_slots": list(gold_slots(table)),
        "trained": asdict(trained),
        "leak_rule": asdict(leak_rule(table)),
        "leak_rule_whole_test": asdict(
            leak_rule(validation_table(problems_test, rows=None))
        ),
        "kl": kl_directions(table, run.weight),
        "filter": {k: list(v) for k, v in filter_counts(runs["published"]).items()},
        "seeds": list(seeds),
    }
    for name, results in runs.items():
        facts[name] = [r.trained.accuracy for r in results]
        facts[f"{name}_whole_test"] = [r.whole_test.accuracy for r in results]
    return facts
