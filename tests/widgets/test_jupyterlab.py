"""The widgets in a real JupyterLab: Python and the page follow each other.

JupyterLab lives in an environment of its own, named by DAPO_JUPYTERLAB (the path of
its `jupyter-lab`) or found on PATH; it needs anywidget and ipywidgets beside it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.engines
ROOT = Path(__file__).resolve().parents[2]
CELLS = (
    "from ipywidgets import jslink\n"
    "from dapo_lib.widgets import EpsilonExplorer, GroupExplorer\n"
    "a, b = EpsilonExplorer(), EpsilonExplorer()\n"
    "seen = []\n"
    "a.observe(lambda change: seen.append(change.new), 'eps_high')\n"
    "link = jslink((a, 'eps_high'), (b, 'eps_high'))\n"
    "display(a, b)",
    "print('python sees', a.eps_high, b.eps_high, len(seen) > 0)",
    "a.eps_high = 0.5\na.lang = 'zh'",
    "from dapo_lib.live import RunYourself\nr = RunYourself(eps_high=0.5)\ndisplay(r)",
    "r.wait()\nprint('it ended', r.status, len(r.runs[-1]['x']) > 1)",
)


@pytest.fixture
def lab(tmp_path):
    """A running server with a notebook and this interpreter as its only kernel."""
    binary = os.environ.get("DAPO_JUPYTERLAB") or shutil.which("jupyter-lab")
    if not binary:
        pytest.skip("DAPO_JUPYTERLAB names no jupyter-lab, and PATH has none")
    _write(tmp_path)
    places = {n: str(tmp_path / n.lower()) for n in ("CONFIG", "DATA", "RUNTIME")}
    env = os.environ | {f"JUPYTER_{n}_DIR": place for n, place in places.items()}
    options = ["--no-browser", "--allow-root", "--port=0", "--IdentityProvider.token=t"]
    options.append("--expose-app-in-browser")
    root = f"--ServerApp.root_dir={tmp_path / 'books'}"
    log = (tmp_path / "log").open("wb")
    server = subprocess.Popen(
        [binary, *options, root], env=env | {"HOME": str(tmp_path)}, stderr=log
    )
    try:
        yield _address(Path(places["RUNTIME"]), server)
    finally:
        server.terminate()
        server.wait(20)
        log.close()


def _write(folder: Path) -> None:
    kernel = folder / "data" / "kernels" / "book"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "book", "language": "python"}
    env = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    (kernel / "kernel.json").write_text(json.dumps(spec | {"env": env}))
    cells = [
        {"cell_type": "code", "id": f"c{i}", "source": source, "metadata": {}}
        | {"outputs": [], "execution_count": None}
        for i, source in enumerate(CELLS)
    ]
    (folder / "books").mkdir()
    book = {"cells": cells, "nbformat": 4, "nbformat_minor": 5}
    kernelspec = {"name": "book", "display_name": "book", "language": "python"}
    book["metadata"] = {"kernelspec": kernelspec}
    (folder / "books" / "book.ipynb").write_text(json.dumps(book))


def _address(runtime: Path, server: subprocess.Popen) -> str:
    for _ in range(600):
        assert server.poll() is None, "JupyterLab stopped"
        for info in runtime.glob("jpserver-*.json"):
            text = info.read_text()
            if text.strip():
                return json.loads(text)["url"]
        time.sleep(0.1)
    raise AssertionError("JupyterLab did not start within a minute")


def _open(lab: str, browser):
    """The notebook's page with an idle kernel, and what runs its i-th cell."""
    page = browser.new_page(viewport={"width": 1200, "height": 1400})
    page.set_default_timeout(120_000)
    page.goto(f"{lab}lab/tree/book.ipynb?token=t&reset")
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
    page.wait_for_function("""() => {
      const kernel = jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel;
      return kernel?.connectionStatus === 'connected' && kernel.status === 'idle';
    }""")

    def run(i: int) -> None:
        page.locator(".jp-CodeCell .jp-InputArea-editor").nth(i).click()
        page.evaluate("jupyterapp.commands.execute('notebook:run-cell')")

    return page, run


def test_a_cell_trains_shows_progress_and_stops(lab, browser) -> None:
    page, run = _open(lab, browser)
    run(3)
    page.locator("[data-name=run]:enabled").click()
    page.wait_for_function("document.querySelector('.dw progress')?.value > 0.02")
    page.locator("[data-name=stop]:enabled").click()
    page.get_by_text("Stopped after").wait_for()
    assert 0 < page.locator(".dw progress").evaluate("p => p.value") < 1
    assert page.locator(".dw path.line").count() == 1
    run(4)
    page.get_by_text("it ended stopped True").wait_for()


def test_python_and_page_follow_each_other(lab, browser) -> None:
    page, run = _open(lab, browser)
    run(0)
    sliders = page.locator(".dw input[data-name=eps_high]")
    sliders.nth(1).wait_for()
    sliders.first.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "document.querySelectorAll('.dw input[data-name=eps_high]')[1].value === '0.32'"
    )
    run(1)
    page.get_by_text("python sees 0.32 0.32 True").wait_for()
    run(2)
    page.get_by_text("裁剪在哪里挡住梯度").wait_for()
    assert [s.input_value() for s in sliders.all()] == ["0.5", "0.5"]
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    ground = page.locator(".dw").first.evaluate(
        "e => getComputedStyle(e).backgroundColor"
    )
    assert ground == "rgb(26, 31, 36)"
    page.close()
