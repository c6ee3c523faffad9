"""Published tables that are not grids of language-model runs, by name.

Left out: the work, which each table's own module does.
"""

from __future__ import annotations

from collections.abc import Callable

from dapo_lib.data.gsm8k import resolve_data
from dapo_lib.experiments import derivation, detached, seed_tables, suites, truncation
from dapo_lib.experiments.catalogue import SEEDS


def _candidate() -> None:
    derivation.publish(resolve_data(offline=True))


def _seed() -> None:
    seed_tables.publish(resolve_data(offline=True))


TABLES: dict[str, Callable[[], object]] = {
    "candidate": _candidate,
    "seed": _seed,
    "detached": lambda: detached.publish(SEEDS),
    "truncation_noise": lambda: truncation.publish(SEEDS),
    **{f"suite_{name}": lambda n=name: suites.publish(n) for name in suites.SUITES},
}
