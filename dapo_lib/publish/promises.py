"""The page of promises: what each one means, which tests hold it, what they said last.

`make test`, `make soak` and the others leave JUnit files in `_build/tests`; accepting
them writes book/reference/tests.json, and the page is made from that. Left out: running
tests, and words, which are in labels/promises.yml.
"""

from __future__ import annotations

import xml.etree.ElementTree as Xml
from pathlib import Path
from typing import Any

from dapo_lib.errors import BadInput, DamagedFile
from dapo_lib.files import read_json, write_bytes, write_json
from dapo_lib.labels import Lang, label
from dapo_lib.publish.layout import LANGS, Layout
from dapo_lib.publish.markdown import table

SCHEMA = "dapo-book/tests/1"
SUITES = ("test", "site", "soak", "engines")
OUTCOMES = ("passed", "skipped", "failed")
# promise -> the files, or folders of files, whose tests hold it
PROMISES: dict[str, tuple[str, ...]] = {
    "resume": ("test_checkpoint", "experiments.test_session", "soak.test_kill"),
    "repeat": ("publish.test_reference", "soak.test_threads"),
    "damage": ("test_files", "hostile.test_damaged"),
    "disk": (
        "hostile.test_disk",
        "hostile.test_two_runs",
        "experiments.test_sweep",
        "soak.test_disk",
    ),
    "starve": ("hostile.test_starvation", "soak.test_memory"),
    "input": ("hostile.test_inputs", "hostile.test_paths", "cli", "engines"),
    "pages": ("hostile.test_pages", "widgets.test_host", "publish.test_outputs"),
    "site": ("site", "hostile.test_site_leaks"),
    "supply": ("hostile.test_supply_chain", "soak.test_package"),
    "oracle": ("oracles", "conformance_rows", "invariances"),
    "verifier": ("verifier", "fuzz"),
    "words": ("notebooks", "publish.test_twins"),
}

Counts = dict[str, int]


def record_file(layout: Layout) -> Path:
    """The committed counts of the last accepted run."""
    return layout.reference.with_name("tests.json")


def collect(layout: Layout) -> dict[str, dict[str, Counts]]:
    """Suite -> test file -> how many passed, were skipped, failed; from `_build/tests`.

    Raises ``BadInput`` without a file of `make test`, ``DamagedFile`` on one that
    cannot be read.
    """
    folder = layout.build / "tests"
    found = {s: folder / f"{s}.xml" for s in SUITES if (folder / f"{s}.xml").exists()}
    if "test" not in found:
        raise BadInput(f"{folder}: no test.xml; run `make test`, best `make soak` too")
    return {suite: _read(path) for suite, path in found.items()}


def _read(path: Path) -> dict[str, Counts]:
    try:
        cases = Xml.parse(path).getroot().iter("testcase")
        files: dict[str, Counts] = {}
        for case in cases:
            counts = files.setdefault(_file(case), dict.fromkeys(OUTCOMES, 0))
            counts[_outcome(case)] += 1
    except Xml.ParseError as error:
        raise DamagedFile(f"{path}: not a JUnit file; run the tests again") from error
    return dict(sorted(files.items()))


def _file(case: Xml.Element) -> str:
    """tests.hostile.test_disk -> hostile.test_disk; a doctest goes by its module."""
    return (case.get("classname") or "").removeprefix("tests.")


def _outcome(case: Xml.Element) -> str:
    kinds = {child.tag for child in case}
    if kinds & {"failure", "error"}:
        return "failed"
    return "skipped" if "skipped" in kinds else "passed"


def accept(layout: Layout) -> dict[str, Counts]:
    """Make this run the record; a suite that was not run keeps its last counts.

    Raises ``BadInput`` where a test failed: what is broken is not promised.
    """
    suites = collect(layout)
    total = totals(suites)
    failed = {suite: c["failed"] for suite, c in total.items() if c["failed"]}
    if failed:
        raise BadInput(f"tests: {failed} failed; mend them, then accept the run")
    path = record_file(layout)
    known = read_json(path, SCHEMA)["suites"] if path.exists() else {}
    write_json(path, SCHEMA, {"suites": known | suites})
    return totals(known | suites)


def totals(suites: dict[str, dict[str, Counts]]) -> dict[str, Counts]:
    """The counts of each suite over all its files."""
    return {suite: _sum(files.values()) for suite, files in suites.items()}


def _sum(parts: Any) -> Counts:
    parts = list(parts)
    return {name: sum(p[name] for p in parts) for name in OUTCOMES}


def held_by(suites: dict[str, dict[str, Counts]], key: str) -> dict[str, Counts]:
    """The files that hold a promise, with their counts over all suites."""
    held: dict[str, Counts] = {}
    for files in suites.values():
        for file, counts in files.items():
            if any(file == p or file.startswith(f"{p}.") for p in PROMISES[key]):
                held[file] = _sum([counts, held.get(file, dict.fromkeys(OUTCOMES, 0))])
    return dict(sorted(held.items()))


def write(layout: Layout) -> None:
    """Write `_build/generated/promises.<lang>.md` from the committed record."""
    suites = read_json(record_file(layout), SCHEMA)["suites"]
    for lang in LANGS:
        path = layout.generated / f"promises.{lang}.md"
        write_bytes(path, page(suites, lang).encode())


def page(suites: dict[str, dict[str, Counts]], lang: Lang) -> str:
    """A paragraph a promise, and the suites' totals, as MyST."""
    parts = [_paragraph(suites, key, lang) for key in PROMISES]
    return "\n\n".join([_totals(suites, lang), *parts]) + "\n"


def _paragraph(suites: dict[str, dict[str, Counts]], key: str, lang: Lang) -> str:
    held = held_by(suites, key)
    said = _words("none", lang)
    if held:
        files = _words("comma", lang).join(f"`{file}`" for file in _short(held))
        counts = _words("held", lang).format(**_sum(held.values()))
        said = f"{counts}{_words('colon', lang)}{files}"
    return "\n\n".join([f"**{_words(key, lang)}**", _words(f"{key}_how", lang), said])


def _short(held: dict[str, Counts]) -> list[str]:
    """Folders of tests for the page: a long list of files says less."""
    rooms = {file.rpartition(".")[0] or file for file in held}
    return list(held) if len(held) <= 4 else sorted(rooms)


def _totals(suites: dict[str, dict[str, Counts]], lang: Lang) -> str:
    names = ("suite", "passed", "skipped")
    lines = []
    for suite, counts in totals(suites).items():
        shown = [f"{counts[name]:,}" for name in names[1:]]
        lines.append([f"`make {_COMMAND.get(suite, suite)}`", *shown])
    return table([_words(name, lang) for name in names], lines)


_COMMAND = {"site": "site-test"}


def _words(key: str, lang: Lang) -> str:
    return label(f"promises.{key}", lang)
