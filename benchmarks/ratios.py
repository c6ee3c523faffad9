"""Ours against TRL, plain torch and pure matrix products, on the same work in one run.

Prints ratios of process CPU seconds on one thread, A B A B, medians of paired ratios,
and writes `_build/bench.json`. Run it by `python -m benchmarks.run`. Left out: absolute
times, which say more about the machine than about the code.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from benchmarks import scaling, skip
from benchmarks.addition import Addition, checkpoint
from benchmarks.ours import A64, BOOK, WORKS, Ours, Products, Work, timed
from benchmarks.plain import Plain
from dapo_lib.files import write_bytes
from dapo_lib.lm.model import Decoder
from dapo_lib.lm.tasks import DigitSum
from dapo_lib.lm.warm_start import named, warm_model

ROOT = Path(__file__).resolve().parent.parent
TRL = "TRL 1.16.0"
ONLY = "works whose name contains this; the rows of others stay in --out"
fitted = cache(checkpoint)


def measure(work: Work, cycles: int) -> list[dict[str, Any]]:
    """The rows of one work: every peer over ours, ours over matrix products."""
    if work is BOOK:
        model, tasks = warm_model(named("digit_sum")), DigitSum
    else:
        model, tasks = fitted(work.config, work.l_max), Addition
    sides = [
        side(work, copy.deepcopy(model), tasks(1, l_max=work.l_max))
        for side in (Ours, Plain)
    ]
    ours, plain = sides
    products = Products(ours)
    theirs = alternate(
        work,
        model,
        cycles + 1,
        lambda: [x.cycle() for x in (ours, products, plain)],
    )
    lengths = said(work, ours)
    about = {"work": work.name, "part": "cycle", "lengths": lengths}
    floor = statistics.median(ratios(ours.seconds, products.seconds))
    rows = []
    for peer, seconds, goal in (
        (TRL, theirs, work.goal),
        ("plain torch", plain.seconds, None),
    ):
        if seconds:
            row = about | {"peer": peer}
            row |= spread("ratio_peer_ours", ratios(seconds, ours.seconds))
            rows.append(row | {"ratio_ours_floor": floor, "goal": goal})
    for part, goal in zip(("sampling", "training"), work.goals, strict=True):
        over = ratios(getattr(ours, part), getattr(products, part))
        row = about | {"part": part, "peer": "matrix products"}
        row |= spread("ratio_ours_floor", over) | {"goal": goal}
        rows.append(row | {"ratio_peer_ours": 1 / row["ratio_ours_floor"]})
    return [*rows, skip.measure(ours)] if work is A64 else rows


def alternate(
    work: Work, model: Decoder, cycles: int, between: Callable[[], Any]
) -> list[float]:
    """CPU seconds of TRL's cycles, ours between them; none where TRL is not asked."""
    if work.goal is None or find_spec("trl") is None:
        for _ in range(cycles):
            between()
        return []
    from benchmarks.trl_peer import run_trl

    return run_trl(
        copy.deepcopy(model),
        Addition(1, l_max=work.l_max),
        batch=work.batch,
        updates=work.updates,
        group_size=work.group_size,
        l_max=work.l_max,
        cycles=cycles,
        full=work.full,
        between=between,
    )[0]


def said(work: Work, ours: Ours) -> str:
    """The distribution of lengths, which decides the ratio."""
    length = ours.rollout.length.double()
    cut = 100 * ours.rollout.truncated.double().mean()
    kind = "full" if work.full else "realistic"
    return f"{kind}: mean {length.mean():.1f} of {work.l_max}, {cut:.0f} % cut"


def ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """Paired ratios, the first (a warm-up) dropped."""
    return [a / b for a, b in zip(above, below, strict=True)][1:]


def spread(name: str, found: Sequence[float]) -> dict[str, float]:
    """Median, smallest and largest of paired ratios."""
    median = statistics.median(found)
    return {name: median, "low": min(found), "high": max(found), "pairs": len(found)}


def main() -> None:
    """Measure the works that the arguments name, print and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help=ONLY)
    parser.add_argument("--cycles", type=int, default=5, help="paired ratios a work")
    parser.add_argument("--out", default=str(ROOT / "_build" / "bench.json"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    out, only = Path(arguments.out), arguments.only
    jobs = {w.name: lambda w=w: measure(w, arguments.cycles) for w in (*WORKS, BOOK)}
    jobs["scale"] = scaling.measure
    order = list(jobs)
    jobs = {name: job for name, job in jobs.items() if only in name}
    known = json.loads(out.read_text()) if only and out.exists() else []
    rows = [r for r in known if r["job"] in order and r["job"] not in jobs]
    for name, job in jobs.items():
        spent, found = timed(job)
        for row in found:
            rows.append({"job": name, **row, "cpu_seconds": spent})
            print(line(row), flush=True)
        rows.sort(key=lambda row: order.index(row["job"]))
        write_bytes(out, json.dumps(rows, indent=1).encode() + b"\n")


def line(row: dict[str, Any]) -> str:
    """One row for the terminal."""
    peers = row["part"] in ("cycle", "skip")
    what = f"{row['peer']} / ours" if peers else f"ours / {row['peer']}"
    value = row["ratio_peer_ours" if peers else "ratio_ours_floor"]
    goal = "" if row.get("goal") is None else f"  goal {row['goal']}"
    name = f"{row['work']}, {row['part']}"
    return (
        f"{name:44} {what:26} {value:.2f} [{row['low']:.2f}, {row['high']:.2f}]{goal}"
    )


if __name__ == "__main__":
    main()
