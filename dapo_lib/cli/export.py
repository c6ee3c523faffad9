"""`dapo export`: hand a run over to TRL or verl.

Left out: work; see dapo_lib/engines.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from dapo_lib.cli import app

Change = Annotated[
    list[str] | None,
    typer.Option("--set", help="key=value, dotted, as schedule.group_size=8"),
]


@app.command()
def export(
    engine: Annotated[
        Literal["trl", "verl", "ours"], typer.Argument(help="ours: print the YAML")
    ],
    config: Annotated[
        str, typer.Argument(help="a run's YAML file, or dapo-32b, one-gpu, laptop")
    ],
    out: Annotated[Path | None, typer.Option(help="folder to write")] = None,
    set_: Change = None,
    force: Annotated[
        bool, typer.Option("--force", help="overwrite the files of an earlier export")
    ] = False,
    allow_loss: Annotated[
        bool, typer.Option("--allow-loss", help="export without what the engine lacks")
    ] = False,
    engine_version: Annotated[
        str | None, typer.Option(help="the version that will run it")
    ] = None,
) -> None:
    """Write a folder from which the engine starts the same run."""
    from dapo_lib.engines import export as hand_over
    from dapo_lib.engines import render, table
    from dapo_lib.errors import BadInput
    from dapo_lib.experiments.config import load_run

    run = load_run(config, set_ or ())
    if engine == "ours":
        typer.echo(render.render_ours(run), nl=False)
        return
    if out is None:
        raise BadInput("--out: give the folder to write")
    warning = hand_over.version_warning(engine, engine_version)
    if warning:
        print(f"dapo: warning: {warning}", file=sys.stderr)
    paths, verdict = hand_over.export(
        run, engine, out, force=force, allow_loss=allow_loss
    )
    for limit in table.limits(run, engine):
        print(f"{limit.level}: {hand_over.describe(limit)}")
    print(f"check-config: {verdict}")
    print(f"written: {', '.join(p.name for p in paths)} in {out}")
