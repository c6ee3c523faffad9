"""`dapo conform`: run the conformance suite on ours, on anyone's, or on all four.

Left out: rows and judgement, which are `dapo_lib.conformance`'s.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dapo_lib.cli import app
from dapo_lib.errors import BadInput


@app.command()
def conform(
    adapter: Annotated[
        str | None, typer.Argument(help="module:attribute or file.py [this library]")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="ours, verl, TRL, OpenRLHF, each in its own")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON only")] = False,
    out: Annotated[
        Path | None, typer.Option(help="folder for conformance.csv and .json")
    ] = None,
    python: Annotated[
        str | None, typer.Option(help="the Python that runs the adapter [this one]")
    ] = None,
    timeout: Annotated[float, typer.Option(help="seconds a question")] = 20.0,
    environments: Annotated[
        Path, typer.Option(help="where --all puts its environments")
    ] = Path("_build/envs"),
) -> None:
    """Which rows of the suite a DAPO implementation gets right, and by what value."""
    if not timeout > 0:
        raise BadInput(f"--timeout: got {timeout}, expected seconds > 0")
    if every and (adapter is not None or python is not None):
        given = adapter if adapter is not None else python
        raise BadInput(f"--all: got {given!r} too, give one or the other")
    if out is not None:
        from dapo_lib.files import check_writable

        check_writable(out / "conformance.csv")
    reports = (
        _every(environments, timeout) if every else [_one(adapter, python, timeout)]
    )
    if every:
        _expect_whole(reports)
    if out is not None:
        _publish(reports, out)
    _show(reports, as_json)


def _one(adapter: str | None, python: str | None, timeout: float) -> Any:
    from dapo_lib.conformance.environments import PEERS

    ours = PEERS[0]
    spec = adapter or ours.adapter
    return _run(ours.name if adapter is None else adapter, spec, python, timeout)


def _every(folder: Path, timeout: float) -> list[Any]:
    from dapo_lib.conformance.environments import PEERS, prepare

    def say(text: str) -> None:
        typer.echo(text, err=True)

    return [
        _run(peer.name, peer.adapter, prepare(peer, folder, say), timeout)
        for peer in PEERS
    ]


def _run(system: str, spec: str, python: str | None, timeout: float) -> Any:
    from tqdm import tqdm

    from dapo_lib.conformance.ask import Adapter
    from dapo_lib.conformance.rows import ROWS
    from dapo_lib.conformance.run import run

    child = Adapter(spec, python, timeout=timeout)
    with tqdm(total=len(ROWS), desc=system, unit="row", disable=None) as bar:
        return run(system, child, ROWS, progress=lambda row: bar.update())


def _expect_whole(reports: list[Any]) -> None:
    """An adapter of ours that breaks says nothing about its system: no matrix."""
    broken = [f"{r.system} {row}" for r in reports for row in r.broken()]
    if broken:
        from dapo_lib.errors import DapoError

        raise DapoError(
            f"conform: {len(broken)} answers broke, nothing written: {broken[0]}; "
            "remove the environment to make it anew, or raise --timeout"
        )


def _publish(reports: list[Any], out: Path) -> None:
    from dapo_lib.conformance.matrix import frame
    from dapo_lib.experiments import published
    from dapo_lib.experiments.provenance import provenance

    facts = provenance()
    facts["systems"] = {r.system: r.versions for r in reports}
    facts["counts"] = {r.system: r.counts() for r in reports}
    published.save("conformance", frame(reports), facts, out)


def _show(reports: list[Any], as_json: bool) -> None:
    from dapo_lib.conformance.matrix import SCHEMA, payload, text

    if as_json:
        systems = [payload(r) for r in reports]
        body = systems[0] if len(systems) == 1 else {"systems": systems}
        print(json.dumps({"schema": SCHEMA, **body}, indent=1, ensure_ascii=False))
        return
    print("\n\n".join(text(r) for r in reports))
