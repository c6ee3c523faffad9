"""The whole way from sources to the site: check, execute, compare, render, join.

Left out: each step's work; this file is their order.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from dapo_lib.errors import BadInput, DapoError
from dapo_lib.files import write_bytes
from dapo_lib.publish import configs, execute, frontend, languages, metrics_page, twins
from dapo_lib.publish.layout import LANGS, Layout

_JUPYTER_BOOK = "from jupyter_book.cli.main import main; main()"  # not runnable by -m


def build(layout: Layout, langs: Sequence[str] = LANGS, *, force: bool = False) -> Path:
    """Build the site of `langs` and return its index.html.

    Raises ``BadInput`` on stale twins, ``DapoError`` naming the step that failed.
    """
    began = time.perf_counter()
    check_sources(layout)
    frontend.prepare(layout)
    execute.execute(layout, layout.chapters(), LANGS, force=force)
    _say("metrics: comparing languages and the reference")
    faults = metrics_page.write(layout)
    for lang in langs:
        render(layout, lang)
    index = join(layout, langs)
    _say(f"book: {time.perf_counter() - began:.0f} s, {index}")
    if faults:
        raise DapoError(f"metrics: {len(faults)} fault(s): " + "; ".join(faults))
    return index


def check_sources(layout: Layout) -> None:
    """Raise ``BadInput`` listing every stale or unequal twin."""
    faults = twins.faults(layout)
    if faults:
        raise BadInput("sources: " + "; ".join(faults))


def render(layout: Layout, lang: str) -> Path:
    """Run Jupyter Book for a language, from an empty tree, warnings as errors."""
    config, toc = configs.prepare(layout, lang)
    output = layout.build / "book" / lang
    shutil.rmtree(output, ignore_errors=True)
    _say(f"jupyter-book [{lang}]")
    options = ["--builder", "html", "-n", "-W", "--keep-going", "-q"]
    paths = ["--path-output", str(output), "--config", str(config), "--toc", str(toc)]
    done = subprocess.run(
        [sys.executable, "-c", _JUPYTER_BOOK, "build", ".", *options, *paths],
        cwd=layout.root,
        capture_output=True,
        text=True,
        env=_environment(layout),
    )
    html = output / "_build" / "html"
    if done.returncode != 0 or not html.is_dir():
        print(done.stderr.replace(f"{layout.root}/", ""), file=sys.stderr)
        raise DapoError(f"jupyter-book [{lang}] failed; its warnings are above")
    return html


def join(layout: Layout, langs: Sequence[str]) -> Path:
    """Put the built languages and the entry page under `_build/site`."""
    for lang in langs:
        target = layout.site / lang
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(layout.build / "book" / lang / "_build" / "html", target)
        write_bytes(target / "index.html", languages.front_page(lang).encode())
    write_bytes(layout.site / "index.html", languages.ENTRY.encode())
    write_bytes(layout.site / ".nojekyll", b"")  # or Pages hides _static
    return layout.site / "index.html"


def _environment(layout: Layout) -> dict[str, str]:
    path = os.pathsep.join([str(layout.root), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep), "PYTHONHASHSEED": "0"}


def _say(text: str) -> None:
    print(text, flush=True)
