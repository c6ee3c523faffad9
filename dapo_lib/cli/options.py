"""Option types and checks that several commands share.

Left out: commands. This module puts nothing on the app.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dapo_lib.errors import BadInput

AlgorithmName = Literal["dapo", "grpo", "dr_grpo", "rloo", "reinforce", "ppo"]
Out = Annotated[Path | None, typer.Option(help="where the JSON goes")]
DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data", help="GSM8K folder (train.jsonl, test.jsonl) [env DAPO_DATA]"
    ),
]
Offline = Annotated[
    bool, typer.Option("--offline", help="never fetch; without data: embedded problems")
]


def given(context: typer.Context) -> dict[str, Any]:
    """The options that stand on the command line, by parameter name."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {
        name: context.params[name]
        for name, source in sources.items()
        if source is not None and source.name == "COMMANDLINE"
    }


def reject_unused(context: typer.Context, used: set[str], where: str) -> None:
    """Raise ``BadInput`` for an option on the command line that does nothing here.

    `used` are parameter names; `where` names the setting or recipe in the message.
    """
    for name, value in given(context).items():
        if name not in used:
            option = "--" + name.replace("_", "-")
            raise BadInput(f"{option}: got {value!r}, but {where} has no such option")


def check_ranges(
    context: typer.Context, ranges: dict[str, tuple[float, float]]
) -> None:
    """Raise ``BadInput`` naming the option and value of a number outside its range."""
    for name, (low, high) in ranges.items():
        value = context.params.get(name)
        if value is not None and not low <= value <= high:  # False for NaN too
            option = "--" + name.replace("_", "-")
            upper = "" if high >= 10**5 else f" and <= {high}"
            raise BadInput(f"{option}: got {value}, expected a number >= {low}{upper}")
