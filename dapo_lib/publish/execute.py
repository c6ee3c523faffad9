"""Run the notebooks with papermill, once a language; a known run is not repeated.

papermill's own command line accepts undeclared parameters and passes numbers as text,
so its function is called, in a process of its own that a time limit can end. Left out:
any other way to execute; Jupyter Book only renders.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dapo_lib.errors import BadInput, DamagedFile, DapoError
from dapo_lib.files import canonical, digest, read_json, write_bytes, write_json
from dapo_lib.publish import fingerprint, prose
from dapo_lib.publish.layout import Layout

STAMP = "dapo-book/executed/1"
CELL_SECONDS = 240
NOTEBOOK_SECONDS = 600


@dataclass(frozen=True)
class Job:
    """One notebook in one language with its parameters."""

    notebook: Path
    lang: str
    values: dict[str, Any]
    output: Path
    key: str

    @property
    def stamp(self) -> Path:
        """The file that says which key the output belongs to."""
        return self.output.with_suffix(".key")


def plan(
    layout: Layout, notebook: Path, lang: str, given: dict[str, Any] | None = None
) -> Job:
    """What has to be run. Raises ``BadInput`` on undeclared parameters, and on `lang`
    among them: the language names the folder of the copy.
    """
    if given and "lang" in given:
        raise BadInput(f"lang={given['lang']!r}: give --lang, not --set")
    document = prose.read(notebook)
    declared = prose.parameters(document, notebook.name)
    values = {"lang": lang, **(given or {})}
    for name, value in values.items():
        if name not in declared:
            known = ", ".join(declared)
            raise BadInput(f"{notebook.name}: no parameter {name!r}; declared: {known}")
        if type(value) is not type(declared[name]):
            wanted = type(declared[name]).__name__
            raise BadInput(f"{notebook.name}: {name}={value!r}, expected a {wanted}")
    output = layout.executed(lang) / notebook.name
    return Job(notebook, lang, values, output, fingerprint.key(document, values))


def execute(
    layout: Layout,
    notebooks: Iterable[Path],
    langs: Iterable[str],
    *,
    given: dict[str, Any] | None = None,
    force: bool = False,
    workers: int | None = None,
) -> int:
    """Run what is not up to date, all of one language first; returns how many ran.

    The second language finds the first one's runs in the cache. Raises ``DapoError``
    naming notebook and cell where one fails, after the others have finished.
    """
    jobs = [plan(layout, n, lang, given) for lang in langs for n in notebooks]
    todo = [job for job in jobs if force or not fresh(layout, job)]
    print(f"notebooks: {len(todo)} to run, {len(jobs) - len(todo)} up to date")
    workers = workers or min(2, os.cpu_count() or 1)
    with ThreadPoolExecutor(workers) as pool:
        errors = [e for e in pool.map(lambda job: _run(layout, job), todo) if e]
    if errors:
        raise DapoError("; ".join(errors))
    return len(todo)


def fresh(layout: Layout, job: Job) -> bool:
    """Whether the executed copy and its results are this very job's, and whole."""
    try:
        said = read_json(job.stamp, STAMP)
    except (BadInput, DamagedFile):
        return False
    return said == {"schema": STAMP, "key": job.key, **_sums(layout, job)}


def stamp(layout: Layout, job: Job) -> None:
    """Say, last of all, that the executed copy and its results are this job's."""
    write_json(job.stamp, STAMP, {"key": job.key, **_sums(layout, job)})


def _sums(layout: Layout, job: Job) -> dict[str, str | None]:
    """The checksums of what a job left; None for a file that is not there."""
    results = layout.results / f"{job.notebook.stem}.{job.lang}.json"
    return {
        name: digest(path.read_bytes()) if path.is_file() else None
        for name, path in (("output", job.output), ("results", results))
    }


def _run(layout: Layout, job: Job) -> str | None:
    """Execute in a process of its own; the error as one line, or None."""
    job.stamp.unlink(missing_ok=True)
    name, began = f"{job.notebook.stem} [{job.lang}]", time.perf_counter()
    print(f"  {name} …", flush=True)
    limit = str(CELL_SECONDS)
    command = [sys.executable, "-m", "dapo_lib.publish.worker", str(job.notebook)]
    command += [str(job.output), canonical(job.values).decode(), limit]
    try:
        done = subprocess.run(
            command,
            env=_environment(layout, job),
            cwd=layout.notebooks,
            capture_output=True,
            text=True,
            timeout=NOTEBOOK_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"{job.notebook.name} [{job.lang}]: over {NOTEBOOK_SECONDS} s"
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        plain = re.sub(r"\x1b\[[0-9;]*m", "", done.stderr)
        print(plain, file=sys.stderr, flush=True)
        return f"{job.notebook.name} [{job.lang}]: {lines[-1]}"
    stamp(layout, job)
    took = time.perf_counter() - began
    # beside the copy, not in it: two equal runs leave equal copies
    write_bytes(job.output.with_suffix(".seconds"), f"{took:.1f}\n".encode())
    print(f"  {name} {took:.0f} s", flush=True)
    return None


def _environment(layout: Layout, job: Job) -> dict[str, str]:
    path = os.pathsep.join([str(layout.root), os.environ.get("PYTHONPATH", "")])
    return {
        **os.environ,
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": path.rstrip(os.pathsep),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "DAPO_RESULTS": str(layout.results),
        "DAPO_FONT": str(layout.frontend / "NotoSansSC.ttf"),
    }
