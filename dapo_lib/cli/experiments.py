"""`dapo experiments` and `dapo sweep`: named experiments, and grids of one's own.

Left out: work; see dapo_lib/experiments.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dapo_lib.cli import app
from dapo_lib.cli.options import DataFolder, Offline, Out, check_ranges

experiments = typer.Typer(
    help="The experiments behind the book's figures.", no_args_is_help=True
)
app.add_typer(experiments, name="experiments")
Workers = Annotated[int | None, typer.Option(help="processes [all cores]")]
Names = Annotated[list[str] | None, typer.Argument(help="all without a name")]


@experiments.command("list")
def list_() -> None:
    """Names, arms and the part of the paper each is a miniature of."""
    from dapo_lib.experiments.catalogue import EXPERIMENTS

    for name, e in EXPERIMENTS.items():
        print(f"{name:24} {len(e.arms):2} arms x {len(e.seeds)} seeds  {e.paper}")


@experiments.command("run")
def run(
    context: typer.Context,
    names: Names = None,
    profile: Annotated[
        Literal["full", "ci"],
        typer.Option(help="full: all seeds, published; ci: a sample, compared"),
    ] = "full",
    workers: Workers = None,
) -> None:
    """Run experiments; finished runs come from the cache, an interrupt loses none."""
    from dapo_lib.experiments.catalogue import EXPERIMENTS, experiment
    from dapo_lib.experiments.tables import TABLES

    check_ranges(context, {"workers": (1, 10**4)})
    full = profile == "full"
    chosen = names or [*EXPERIMENTS, *(TABLES if full else ())]
    for name in chosen:
        if full and name in TABLES:
            print(f"{name}: its own table")
            TABLES[name]()
            continue
        e = experiment(name)
        print(f"{e.name}: {len(e.arms)} arms x {len(e.seeds)} seeds")
        if full:
            print(f"written: {e.publish(e.run(workers=workers)).name}")
        else:
            _ci(e)


def _ci(chosen: Any) -> None:
    from dapo_lib.experiments.recheck import recheck

    for line in recheck(chosen):
        print(line)


@experiments.command("show")
def show(
    name: Annotated[str, typer.Argument(help="a published experiment")],
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Arms, intervals and paired differences of a published experiment."""
    from dapo_lib.experiments import published
    from dapo_lib.experiments.summary import as_text, summary

    found = summary(published.load(name))
    print(json.dumps(found, indent=1) if as_json else as_text(found))


@app.command()
def sweep(
    context: typer.Context,
    setting: Annotated[
        Literal["candidate", "lm"], typer.Option(help="which policy and task")
    ] = "candidate",
    arms: Annotated[
        str, typer.Option(help="names with commas; the first is the baseline")
    ] = "grpo,dapo",
    seeds: Annotated[int, typer.Option(help="paired seeds 0 to N-1")] = 10,
    iterations: Annotated[int, typer.Option(help="lm: rollouts a run")] = 16,
    steps: Annotated[int, typer.Option(help="candidate: iterations")] = 300,
    workers: Workers = None,
    backend: Annotated[
        Literal["loky", "ray"], typer.Option(help="loky: this machine's processes")
    ] = "loky",
    address: Annotated[
        str | None, typer.Option(help="ray: the cluster's address [start one here]")
    ] = None,
    data: DataFolder = None,
    offline: Offline = False,
    out: Out = None,
) -> None:
    """Run a grid of arms and seeds; print means, intervals and paired differences."""
    from dapo_lib.experiments.summary import as_text
    from dapo_lib.files import check_writable, write_json

    limits = {"seeds": (1, 10**5), "iterations": (1, 10**6), "steps": (1, 10**9)}
    check_ranges(context, {**limits, "workers": (1, 10**4)})
    if out is not None:
        check_writable(out)
    names = [a.strip() for a in arms.split(",") if a.strip()]
    options = dict(context.params, names=names)
    found = _language(options) if setting == "lm" else _candidate(options)
    print(as_text(found))
    if out is not None:
        write_json(Path(out), "dapo-book/sweep/1", found)
        print(f"written: {out}")


def _language(options: dict[str, Any]) -> dict[str, Any]:
    from dapo_lib.experiments.backends import backend
    from dapo_lib.experiments.catalogue import custom
    from dapo_lib.experiments.summary import summary
    from dapo_lib.train import Schedule

    schedule = Schedule(rollouts=options["iterations"])
    chosen = custom(options["names"], schedule, range(options["seeds"]))
    with backend(options["backend"], options["address"], options["workers"]) as name:
        frame = chosen.run(workers=options["workers"], backend=name)
    return summary(frame)


def _candidate(options: dict[str, Any]) -> dict[str, Any]:
    from dapo_lib.experiments.backends import backend
    from dapo_lib.experiments.candidate_sweep import candidate_sweep
    from dapo_lib.experiments.summary import summary

    if options["data"] is not None:
        os.environ["DAPO_DATA"] = str(options["data"])  # workers read the same folder
    with backend(options["backend"], options["address"], options["workers"]) as name:
        frame = candidate_sweep(
            options["names"],
            seeds=options["seeds"],
            steps=options["steps"],
            data=options["data"],
            offline=options["offline"],
            workers=options["workers"],
            backend=name,
        )
    return summary(frame)
