"""A static page with widgets, a Chromium to open it in, and a Node for the maths."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from dapo_lib.widgets.base import asset

BROWSERS = ("/usr/bin/chromium", "chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox --headless --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
).split()
DROPPED = ("layout", "tabbable", "tooltip")


def _load(name: str):
    """A helper module beside this file (the import mode keeps folders off the path)."""
    spec = importlib.util.spec_from_file_location(
        f"widget_{name}", Path(__file__).with_name(f"{name}.py")
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def samples():
    return _load("samples")


@pytest.fixture(scope="session", name="block_of")
def block_of_fixture():
    return block_of


def missing(what: str) -> None:
    """Skip with a reason on a laptop; fail where CI promises everything is there."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is missing, and CI=true")
    pytest.skip(f"{what} is missing")


def state_of(widget) -> dict:
    return {
        key: value
        for key, value in widget.get_state().items()
        if not key.startswith("_") and key not in DROPPED
    }


def block_of(widgets, links=()) -> dict:
    classes = {
        type(w).__mro__[1].__name__: {"esm": w._esm, "css": w._css} for w in widgets
    }
    models = {
        f"w{i}": {"class": type(w).__mro__[1].__name__, "state": state_of(w)}
        for i, w in enumerate(widgets, 1)
    }
    return {"models": models, "links": list(links), "classes": classes}


def page_of(block: dict, lang: str = "en", theme: str = "light", ids=None) -> str:
    ids = list(block["models"]) if ids is None else ids
    divs = "".join(f'<div class="dapo-widget" data-model="{i}"></div>' for i in ids)
    data = json.dumps(block, ensure_ascii=False).replace("</", "<\\/")
    dark = "background:#121619;color:#e3e8ed" if theme == "dark" else ""
    return (
        f'<!doctype html><html lang="{"zh-CN" if lang == "zh" else "en"}" '
        f'data-theme="{theme}"><meta charset="utf-8"><link rel="icon" href="data:,">'
        '<meta name="viewport" content="width=device-width">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "script-src 'self' blob: 'unsafe-inline'; style-src 'unsafe-inline'; "
        'img-src data:">'
        f'<body style="margin:0 auto;max-width:780px;padding:8px;font:16px/1.6 '
        f"'Noto Sans','Noto Sans CJK SC',sans-serif;{dark}\">{divs}"
        f'<script type="application/json" id="dapo-widgets">{data}</script>'
        f"<script>{asset('host.js')}</script>"
    )


@pytest.fixture(scope="session")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright")
    found = next((b for b in map(shutil.which, BROWSERS) if b), None)
    if found is None:
        missing("Chromium")
    with sync_api.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=found, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser, tmp_path):
    """open_page(block, lang=..., theme=..., width=...) -> a page with .complaints."""
    contexts = []

    def open_(block, lang="en", theme="light", width=900, touch=False, ids=None):
        path = tmp_path / f"page{len(contexts)}.html"
        path.write_text(page_of(block, lang, theme, ids), encoding="utf-8")
        size = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, has_touch=touch)
        contexts.append(context)
        page = context.new_page()
        page.complaints = []
        page.on("pageerror", lambda e: page.complaints.append(str(e)))
        page.on(
            "console",
            lambda m: m.type in ("error", "warning") and page.complaints.append(m.text),
        )
        page.goto(path.as_uri())
        wait_until(
            page,
            "() => [...document.querySelectorAll('.dapo-widget')]"
            ".every(d => d.dataset.state)",
        )
        return page

    yield open_
    for context in contexts:
        context.close()


def wait_until(page, condition: str, argument: object = None) -> None:
    """Poll a JavaScript function from here until it is true, a minute at most.

    Not `wait_for_function`: it polls in the page by evaluating a string, which the
    page's security policy forbids.
    """
    for _ in range(600):
        if page.evaluate(condition, argument):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"not true within a minute: {condition}")


@pytest.fixture
def wait_for():
    """:func:`wait_until`, for tests."""
    return wait_until


def _node() -> str | None:
    if found := shutil.which("node"):
        return found
    try:
        from playwright._impl._driver import compute_driver_executable
    except ImportError:
        return None
    shipped = Path(compute_driver_executable()[0])
    return str(shipped) if shipped.exists() else None


@pytest.fixture(scope="session")
def node():
    """node("epsilon", [["surrogate", [r, a, low, high]], ...]) -> the results."""
    runner = _node()
    if runner is None:
        missing("Node")
    script = (
        "const text = require('fs').readFileSync(0, 'utf8');"
        "const { file, calls } = JSON.parse(text);"
        "const num = (k, v) => typeof v === 'number' && !isFinite(v) ? String(v) : v;"
        "import(file).then((m) => console.log(JSON.stringify("
        "calls.map(([name, args]) => m[name](...args) ?? null), num)));"
    )

    def call(name: str, calls: list) -> list:
        from dapo_lib import widgets

        file = Path(widgets.__file__).parent / f"{name}.mjs"
        done = subprocess.run(
            [runner, "-e", script],
            input=json.dumps({"file": file.as_uri(), "calls": calls}),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return call
