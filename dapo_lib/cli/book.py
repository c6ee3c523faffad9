"""`dapo book ...`, `dapo notebooks` and `dapo metrics`: the book from the command line.

Left out: work; see dapo_lib/publish.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

import typer

from dapo_lib.cli import app
from dapo_lib.errors import BadInput, Drift

book = typer.Typer(help="Execute, check and build the book.", no_args_is_help=True)
app.add_typer(book, name="book")

Lang = Annotated[str | None, typer.Option(help="en or zh; both without it")]
Only = Annotated[
    list[str] | None, typer.Option(help="a notebook's number or name; may be repeated")
]


@book.command()
def build(
    lang: Lang = None,
    force: Annotated[bool, typer.Option(help="execute again what is known")] = False,
) -> None:
    """Execute what changed, compare the metrics, render both languages."""
    from dapo_lib.publish import pipeline
    from dapo_lib.publish.layout import find_layout

    index = pipeline.build(find_layout(), _langs(lang), force=force)
    typer.echo(f"open {index}")


@book.command()
def execute(
    only: Only = None,
    lang: Lang = None,
    force: Annotated[bool, typer.Option(help="run even if nothing changed")] = False,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="name=value of a parameter")
    ] = None,
) -> None:
    """Run notebooks with papermill; what is up to date is skipped."""
    from dapo_lib.publish import execute as runner
    from dapo_lib.publish import frontend
    from dapo_lib.publish.layout import find_layout

    layout = find_layout()
    chosen, given = layout.select(only), _assignments(set_)
    for language in _langs(lang):  # refuse bad parameters before any work
        for notebook in chosen:
            runner.plan(layout, notebook, language, given)
    frontend.prepare(layout)
    runner.execute(layout, chosen, _langs(lang), given=given, force=force)


@book.command()
def render(lang: Lang = None, only: Only = None) -> None:
    """Render what has been executed; with --only, a few chapters into a preview."""
    from dapo_lib.publish import frontend, pipeline
    from dapo_lib.publish.layout import find_layout

    layout, langs = find_layout(), _langs(lang)
    frontend.prepare(layout)
    if only:
        page = pipeline.preview(layout, langs, layout.select(only))
        typer.echo(f"open {page}")
        return
    pipeline.write_pages(layout)
    for language in langs:
        pipeline.render(layout, language)
    typer.echo(f"open {pipeline.join(layout, langs)}")


@book.command()
def check() -> None:
    """List stale twins and what the two languages do not share; exit 2 if any."""
    from dapo_lib.publish import pipeline, twins
    from dapo_lib.publish.layout import find_layout

    layout = find_layout()
    for fault in twins.faults(layout):
        typer.echo(fault)
    pipeline.check_sources(layout)
    typer.echo("sources: both languages agree")


@book.command()
def stamp(only: Only = None) -> None:
    """After re-reading the Chinese twins: mark them as belonging to today's English."""
    from dapo_lib.publish import twins
    from dapo_lib.publish.layout import find_layout

    stamped = twins.stamp(find_layout(), only)
    typer.echo("\n".join(stamped) or "nothing to stamp")


@book.command("to-text")
def to_text(notebook: Annotated[str, typer.Argument(help="number or name")]) -> None:
    """Print a notebook as one text file for writing (see CONTRIBUTING.md)."""
    from dapo_lib.publish import prose, text
    from dapo_lib.publish.layout import find_layout

    for path in find_layout().select([notebook]):
        typer.echo(text.dump(prose.read(path)), nl=False)


@book.command("from-text")
def from_text(
    file: Annotated[
        Path, typer.Argument(help="a text, named as its notebook: 04_x.md")
    ],
) -> None:
    """Write notebooks/<name>.ipynb from a text; stamp its twins after re-reading."""
    from dapo_lib.publish import prose, text
    from dapo_lib.publish.layout import find_layout

    if not file.is_file():
        raise BadInput(f"{file}: no such file")
    if not re.fullmatch(r"[0-9]{2}_[a-z0-9_]+", file.stem):
        raise BadInput(f"{file}: expected a name such as 04_dynamic_sampling.md")
    target = find_layout().notebooks / f"{file.stem}.ipynb"
    old = prose.read(target) if target.exists() else None
    text.write(target, text.load(file.read_text(encoding="utf-8"), old))
    typer.echo(str(target))


@book.command()
def promises(
    accept: Annotated[bool, typer.Option(help="make this run the record")] = False,
) -> None:
    """What the last runs of the tests said; --accept puts it on the page."""
    from dapo_lib.publish import promises as page
    from dapo_lib.publish.layout import find_layout

    layout = find_layout()
    found = page.accept(layout) if accept else page.totals(page.collect(layout))
    for suite, counts in found.items():
        typer.echo(
            f"{suite:8} {counts['passed']:6} passed {counts['skipped']:4} skipped"
        )


@book.command("frontend")
def front_end() -> None:
    """Take MathJax and the Chinese font from npm (once)."""
    from dapo_lib.publish import frontend
    from dapo_lib.publish.layout import find_layout

    frontend.prepare(find_layout())


@book.command()
def branch(
    out: Annotated[Path, typer.Option(help="a new folder")],
) -> None:
    """Write what Colab and Binder open: both languages, and what Binder installs."""
    from dapo_lib.publish import chapter
    from dapo_lib.publish.layout import find_layout

    for path in chapter.write_branch(find_layout(), out):
        typer.echo(str(path))


@app.command()
def notebooks(
    lang: Annotated[str, typer.Option(help="en or zh")] = "en",
    out: Annotated[Path, typer.Option(help="folder for the copies")] = Path("."),
) -> None:
    """Write clean one-language copies of the notebooks."""
    from dapo_lib.publish import chapter
    from dapo_lib.publish.layout import find_layout

    layout = find_layout()
    if out.resolve() == layout.notebooks.resolve():
        raise BadInput(f"--out {out}: that holds the sources; choose another folder")
    for path in chapter.export(layout, _langs(lang)[0], out):
        typer.echo(str(path))


@app.command()
def metrics(
    check: Annotated[bool, typer.Option(help="exit 1 on drift")] = False,
    accept: Annotated[bool, typer.Option(help="make this run the reference")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    experiment: Annotated[
        str | None, typer.Option(help="a published experiment instead: its intervals")
    ] = None,
) -> None:
    """What the notebooks recorded, beside the committed reference."""
    if experiment is not None:
        from dapo_lib.cli.experiments import show

        show(experiment, as_json)
        return
    from dapo_lib.publish import reference
    from dapo_lib.publish.layout import find_layout

    layout = find_layout()
    rows = reference.collect(layout)
    if accept:
        reference.accept(layout, rows)
        rows = reference.collect(layout)
    if as_json:
        typer.echo(json.dumps(reference.as_json(rows), indent=1, ensure_ascii=False))
    else:
        for row in rows:
            drift = "new" if row.drift is None else f"{row.drift:+.2g}"
            typer.echo(f"{row.record.name:40} {row.record.value:12.5g}  drift {drift}")
    faults = reference.faults(rows, layout)
    if check and faults:
        raise Drift(f"{len(faults)} metric(s): " + "; ".join(faults))


def _langs(lang: str | None) -> tuple[str, ...]:
    from dapo_lib.publish.layout import LANGS

    if lang is None:
        return LANGS
    if lang not in LANGS:
        raise BadInput(f"--lang {lang}: expected en or zh")
    return (lang,)


def _assignments(pairs: list[str] | None) -> dict[str, object]:
    import ast

    given: dict[str, object] = {}
    for pair in pairs or []:
        name, found, text = pair.partition("=")
        if not found:
            raise BadInput(f"--set {pair}: expected name=value")
        try:
            given[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            given[name] = text
    return given
