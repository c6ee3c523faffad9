"""`dapo train`: one run of a setting, or one run a seed; prints a table, writes JSON.

Left out: defaults that belong to a recipe. An option that was not given is None here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dapo_lib.cli import app
from dapo_lib.cli.options import (
    AlgorithmName,
    DataFolder,
    Offline,
    Out,
    check_ranges,
    reject_unused,
)

COMMON = {"setting", "algorithm", "eps_low", "eps_high", "group_size", "lr", "out"}
CANDIDATE = COMMON | {"dataset", "recipe", "steps", "data", "offline"}
SEED = CANDIDATE - {"lr"} | {"maximum_examples", "seed"}
DERIVATION = CANDIDATE | {"mix", "prompts_per_step", "seed", "seeds"}
RANGES = {
    "maximum_examples": (4, 10**9),
    "steps": (0, 10**9),
    "prompts_per_step": (1, 10**6),
    "group_size": (2, 10**6),
    "seed": (0, 2**63 - 1),
    "seeds": (1, 10**5),
    "eps_low": (0.0, 1.0),
    "eps_high": (0.0, float("inf")),
    "lr": (1e-12, 1e3),
}


@app.command()
def train(
    context: typer.Context,
    setting: Annotated[
        Literal["candidate", "lm", "hf"], typer.Option(help="which policy and task")
    ] = "candidate",
    algorithm: Annotated[
        AlgorithmName, typer.Option(help="the loop is the same for all")
    ] = "dapo",
    dataset: Annotated[
        Literal["gsm8k-candidate"], typer.Option(help="candidate: the problems")
    ] = "gsm8k-candidate",
    recipe: Annotated[
        Literal["derivation", "seed"],
        typer.Option(help="candidate: derivation is honest, seed the published table"),
    ] = "derivation",
    mix: Annotated[
        Literal["verify", "hard"], typer.Option(help="derivation: the distractors")
    ] = "verify",
    maximum_examples: Annotated[
        int, typer.Option(help="seed: train rows, a quarter of it validates")
    ] = 512,
    steps: Annotated[int, typer.Option(help="candidate: iterations")] = 300,
    prompts_per_step: Annotated[
        int, typer.Option(help="derivation: groups a step")
    ] = 8,
    group_size: Annotated[int | None, typer.Option(help="responses a prompt")] = None,
    seed: Annotated[int | None, typer.Option(help="one seed [seed: 42]")] = None,
    seeds: Annotated[
        int | None, typer.Option(help="derivation: seeds 0 to N-1 side by side")
    ] = None,
    eps_low: Annotated[float | None, typer.Option(help="lower clip, 0 to 1")] = None,
    eps_high: Annotated[float | None, typer.Option(help="upper clip, >= 0")] = None,
    lr: Annotated[float | None, typer.Option(help="learning rate [recipe's]")] = None,
    data: DataFolder = None,
    offline: Offline = False,
    out: Out = None,
) -> None:
    """Train one policy and print untrained -> trained; --out writes it as JSON."""
    from dapo_lib.files import check_writable

    check_ranges(context, RANGES)
    if out is not None:
        check_writable(out)
    options = dict(context.params)
    if setting == "candidate" and recipe == "seed":
        reject_unused(context, SEED, "the seed recipe")
        _seed(options)


def _seed(options: dict[str, Any]) -> None:
    from dapo_lib.experiments.candidate import train_seed

    data = _data(options)
    if options["algorithm"] != "dapo":
        from dapo_lib.errors import BadInput

        name = options["algorithm"]
        raise BadInput(f"--algorithm: got {name!r}, the seed recipe runs dapo only")
    payload, table = train_seed(
        data,
        steps=options["steps"],
        group_size=_or(options["group_size"], 4),
        seed=_or(options["seed"], 42),
        maximum_examples=options["maximum_examples"],
        eps_low=_or(options["eps_low"], 0.2),
        eps_high=_or(options["eps_high"], 0.28),
    )
    _finish(payload, table, data, options["out"])


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value  # 0 is a value, not "unset"


def _data(options: dict[str, Any]) -> Any:
    from dapo_lib.data.gsm8k import resolve_data

    return resolve_data(options["data"], offline=options["offline"])


def _finish(payload: dict[str, Any], table: str, data: Any, out: Path | None) -> None:
    from dapo_lib.experiments.candidate import SCHEMA
    from dapo_lib.files import write_json

    print(f"data: {data.source.describe()}\n{table}")
    if out is not None:
        write_json(out, SCHEMA, payload)
        print(f"written: {out}")
