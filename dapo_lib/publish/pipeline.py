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
from dapo_lib.publish import (
    api_page,
    around,
    bench_page,
    configs,
    conformance_page,
    execute,
    frontend,
    home,
    languages,
    metrics_page,
    paper_map,
    promises,
    twins,
)
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
    write_pages(layout)
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


def write_pages(layout: Layout) -> None:
    """Write what the pages include beside the metrics, in both languages."""
    for page in (api_page, bench_page, conformance_page, paper_map, promises):
        page.write(layout)


def render(layout: Layout, lang: str) -> Path:
    """Run Jupyter Book for a language, from an empty tree, warnings as errors."""
    config, toc = configs.prepare(layout, lang)
    output = layout.build / "book" / lang
    shutil.rmtree(output, ignore_errors=True)
    _say(f"jupyter-book [{lang}]")
    return _jupyter_book(layout, lang, (config, toc), output, ["-n", "-W"])


def preview(layout: Layout, langs: Sequence[str], notebooks: list[Path]) -> Path:
    """Render some chapters into a folder of their own; returns the first one's page.

    Warnings are printed and do not stop: links to chapters that are left out dangle.
    """
    names = [path.stem for path in notebooks]
    folder = layout.build / "preview" / "-".join(name[:2] for name in names)
    for lang in langs:
        config, _ = configs.prepare(layout, lang)
        toc = configs.preview(layout, lang, names, folder)
        output = folder / "book" / lang
        shutil.rmtree(output, ignore_errors=True)
        _say(f"jupyter-book [{lang}] {' '.join(names)}")
        _publish(_jupyter_book(layout, lang, (config, toc), output, []), folder, lang)
    return folder / "site" / langs[0] / "notebooks" / f"{names[0]}.html"


def join(layout: Layout, langs: Sequence[str]) -> Path:
    """Put the built languages and the entry page under `_build/site`."""
    for lang in langs:
        html = layout.build / "book" / lang / "_build" / "html"
        _publish(html, layout.build, lang)
    entry, place = languages.ENTRY, home.home(layout)
    entry = entry.replace(
        f'content="en/{around.CARD}', f'content="{place.site}en/{around.CARD}'
    )
    write_bytes(layout.site / "index.html", languages.seal(entry).encode())
    around.finish(layout, tuple(langs))
    write_bytes(layout.site / ".nojekyll", b"")  # or Pages hides _static
    return layout.site / "index.html"


def _publish(html: Path, folder: Path, lang: str) -> None:
    target = folder / "site" / lang
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(html, target, ignore=shutil.ignore_patterns(*around.UNUSED))
    write_bytes(target / "index.html", languages.front_page(lang).encode())


def _jupyter_book(
    layout: Layout, lang: str, files: tuple[Path, Path], output: Path, strict: list[str]
) -> Path:
    options = ["--builder", "html", "--keep-going", "-q", *strict]
    config, toc = files
    paths = ["--path-output", str(output), "--config", str(config), "--toc", str(toc)]
    done = subprocess.run(
        [sys.executable, "-c", _JUPYTER_BOOK, "build", ".", *options, *paths],
        cwd=layout.root,
        capture_output=True,
        text=True,
        env=_environment(layout),
    )
    html = output / "_build" / "html"
    if done.stderr.strip():
        print(done.stderr.replace(f"{layout.root}/", ""), file=sys.stderr)
    if done.returncode != 0 or not html.is_dir():
        raise DapoError(f"jupyter-book [{lang}] failed; its warnings are above")
    return html


def _environment(layout: Layout) -> dict[str, str]:
    path = os.pathsep.join([str(layout.root), os.environ.get("PYTHONPATH", "")])
    own = {"PYTHONPATH": path.rstrip(os.pathsep), "PYTHONHASHSEED": "0"}
    # it looks at every object there is, torch's deprecated ones too
    quiet = "ignore::FutureWarning:sphinx_external_toc.collectors"
    return {**os.environ, **own, "NO_COLOR": "1", "PYTHONWARNINGS": quiet}


def _say(text: str) -> None:
    print(text, flush=True)
