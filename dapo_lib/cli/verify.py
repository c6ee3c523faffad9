"""`dapo verify`: grade a JSONL file of responses, count the reasons, give the rates.

Left out: grading itself, which is `dapo_lib.grading`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dapo_lib.cli import app
from dapo_lib.errors import BadInput


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="JSON lines in UTF-8")],
    response: Annotated[
        str, typer.Option(help="column of the response: text or a list; dots go inside")
    ],
    reference: Annotated[str, typer.Option(help="column of the ground-truth answer")],
    group: Annotated[
        str | None, typer.Option(help="column of the problem id (default: each line)")
    ] = None,
    mode: Annotated[
        Literal["auto", "answer", "gsm8k", "aime"], typer.Option(help="what is read")
    ] = "auto",
    k: Annotated[
        str | None, typer.Option(help="k of pass@k and maj@k, as 1,8 (default: 1, all)")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON only")] = False,
    csv: Annotated[Path | None, typer.Option(help="one row a response")] = None,
) -> None:
    """Grade responses: verdict and reason of each, avg@k, pass@k, maj@k by problem."""
    from tqdm import tqdm

    from dapo_lib import files, grading

    ks = _ks(k)
    if csv is not None:
        files.check_writable(csv)
    columns = grading.Columns(response, reference, group)
    size = file.stat().st_size if file.is_file() else None
    bar = tqdm(total=size, unit="B", unit_scale=True, desc="verify", disable=None)
    with bar:
        report = grading.grade(grading.read_rows(file, columns, bar.update), mode)
    numbers = grading.summary(report, ks) | {"file": file.name}
    if csv is not None:
        files.write_bytes(csv, grading.as_csv(report))
    print(json.dumps(numbers, indent=1) if as_json else _table(numbers))
    _warn(numbers, csv)


def _ks(text: str | None) -> list[int] | None:
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(p.isascii() and p.isdigit() and 0 < int(p[:9]) for p in parts):
        raise BadInput(f"--k: got {text!r}, expected positive integers, as 1,8")
    return [int(p[:9]) for p in parts]


def _table(numbers: dict[str, Any]) -> str:
    from dapo_lib.labels import label

    lines = [
        f"{numbers['file']}: {numbers['responses']} responses to "
        f"{numbers['problems']} problems, mode {numbers['mode']}",
        f"  right {numbers['correct']}   wrong {numbers['wrong']}   "
        f"not graded {numbers['reference_unparsable']} "
        f"({numbers['groups_removed']} groups removed)   "
        f"broken lines {numbers['broken_lines']}",
        "",
    ]
    for reason, count in numbers["reasons"].items():
        lines.append(f"  {count:>8}  {reason:<22} {label(f'verifier.{reason}', 'en')}")
    lines.append("")
    for row in numbers["metrics"]:
        lines.append(
            f"  {row['metric']:<10} {row['mean']:.4f}  "
            f"95% [{row['low']:.4f}, {row['high']:.4f}] over {row['problems']} problems"
        )
    return "\n".join(lines)


def _warn(numbers: dict[str, Any], csv: Path | None) -> None:
    for one in numbers["broken"][:5]:
        print(f"line {one['line']}: {one['reason']}", file=sys.stderr)
    more = numbers["broken_lines"] - 5
    if more > 0:
        where = f"see {csv}" if csv else "--csv lists them"
        print(f"and {more} more broken lines; {where}", file=sys.stderr)
