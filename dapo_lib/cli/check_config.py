"""`dapo check-config`: says whether a TRL or verl configuration is DAPO.

Left out: judgements, which are `dapo_lib.engines.check_config`'s.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dapo_lib.cli import app


@app.command("check-config")
def check_config(
    file: Annotated[
        Path, typer.Argument(help="GRPOConfig (.py .yaml .json) or verl overrides")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="print JSON only")] = False,
) -> None:
    """Mechanism by mechanism: is this run DAPO, what is dead, what to change."""
    from dapo_lib.engines.check_config import check_config as check
    from dapo_lib.engines.check_config import render

    report = check(file)
    print(json.dumps(report.as_dict(), indent=1) if as_json else render(report))
