"""Switch each mechanism off and see that a test notices; print the table.

Run ``python tests/mutation/run.py [NAME ...]``. Each mutant is a small edit of a
temporary copy of the library; the tests named with it must fail on it, and must pass on
the copy without any edit. Exit status 1 if a mutant survives. ``--write`` puts the
table into tests/README.md. Not collected by pytest. Needs `os.fork`: torch is loaded
once, and each mutant runs in a child that then loads the edited library.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import shutil
import sys
import tempfile
import traceback
from pathlib import Path

import pytest
import torch
from mutants import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "tests" / "README.md"
BEGIN, END = "<!-- mutation table -->", "<!-- end -->"
HEAD = "| switched off | edit in | caught by |\n|---|---|---|"
SKIP = shutil.ignore_patterns("__pycache__", ".*", "node_modules", "_build")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="mutants to run; all by default")
    parser.add_argument("--write", action="store_true", help="update tests/README.md")
    options = parser.parse_args()
    chosen = [m for m in MUTANTS if not options.names or m.name in options.names]
    warm_up()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("dapo_lib", "tests"):
            shutil.copytree(ROOT / name, copy / name, ignore=SKIP)
        shutil.copy(ROOT / "pyproject.toml", copy)
        broken = first_failure(copy, sorted({t for m in chosen for t in m.tests}))
        if broken:
            print(f"{broken} fails before any mutant is made")
            return 1
        table = "\n".join([HEAD, *(try_mutant(copy, m) for m in chosen)])
    print(table)
    if options.write:
        before, rest = README.read_text().split(BEGIN)
        README.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}")
    return int("**survived**" in table)


def try_mutant(copy: Path, mutant: Mutant) -> str:
    """Apply the edit, run the tests, undo it; one row of the table."""
    path = copy / "dapo_lib" / mutant.file
    original = path.read_text()
    if original.count(mutant.old) != 1:
        found = original.count(mutant.old)
        raise SystemExit(f"{mutant.name}: its text occurs {found} times, expected 1")
    replace(path, original.replace(mutant.old, mutant.new))
    try:
        failure = first_failure(copy, mutant.tests)
    finally:
        replace(path, original)
    caught = f"`{failure}`" if failure else "**survived**"
    print(f"{mutant.name}: {caught}", file=sys.stderr, flush=True)
    return f"| {mutant.name} | {mutant.file} | {caught} |"


def replace(path: Path, text: str) -> None:
    """Write a module; its bytecode goes, or an edit of equal length looks unchanged."""
    path.write_text(text)
    shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)


def warm_up() -> None:
    """Load once what every child needs; an optimiser loads more at its first use."""
    torch.set_num_threads(1)
    for name in ("hypothesis", "pydantic", "yaml", "numpy"):
        importlib.import_module(name)
    weight = torch.zeros(1, requires_grad=True)
    for kind in (torch.optim.SGD, torch.optim.AdamW):
        optimiser = kind([weight])
        weight.sum().backward()
        optimiser.step()


def first_failure(copy: Path, tests: list[str]) -> str:
    """Run pytest on the copy in a child process; the first test that failed, or ''."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        status, recorder = 2, Recorder()
        try:
            os.chdir(copy)
            sys.path.insert(0, str(copy))
            with open(os.devnull, "w") as null, contextlib.redirect_stdout(null):
                options = ["-q", "-x", "--tb=no", "-p", "no:cacheprovider"]
                options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
                status = int(pytest.main([*options, *tests], plugins=[recorder]))
            os.write(into, json.dumps(recorder.failed).encode())
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    os.close(into)
    with os.fdopen(out) as stream:
        failed = json.loads(stream.read() or "[]")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, 1) and not failed:
        raise SystemExit(f"pytest ended with status {status} on {tests}")
    return failed[0].split("/")[-1] if failed else ""


class Recorder:
    """A pytest plugin that keeps the names of what failed."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


if __name__ == "__main__":
    sys.exit(main())
