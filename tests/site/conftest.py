"""The built site, served over http:// and opened from file://, in a browser without a
network. Left out: building; `make book` does that.
"""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from pathlib import Path

import pytest

BUILT = Path(__file__).resolve().parents[2] / "_build" / "site"
SITE = Path(os.environ.get("DAPO_SITE") or BUILT).resolve()  # or a preview
CHROMIUM = os.environ.get("DAPO_CHROMIUM") or shutil.which("chromium")
FLAGS = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


READY = """() => {
  const maths = [...document.querySelectorAll(".math")];
  const widgets = [...document.querySelectorAll(".dapo-widget")];
  return maths.every((m) => m.querySelector("mjx-container"))
    && widgets.every((w) => w.dataset.state);
}"""


def need(condition: object, reason: str) -> None:
    """Skip with a reason; in CI the same is a failure."""
    if condition:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built site."""
    need((SITE / "index.html").exists(), "needs the built site: run `make book`")
    return SITE


@pytest.fixture(scope="session")
def server(site):
    """The address of the site over http."""
    handler = functools.partial(Quiet, directory=str(site))
    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{running.server_address[1]}"
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all tests."""
    need(CHROMIUM, "needs Chromium: install Debian's, or set DAPO_CHROMIUM")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(params=["http", "file"])
def base(request, site):
    """The address of the site by either way."""
    if request.param == "file":
        return site.as_uri()
    return request.getfixturevalue("server")


class Visitor:
    """A fresh profile that refuses and remembers every request outside the site."""

    def __init__(self, browser, base: str, **options) -> None:
        self.context = browser.new_context(**options)
        self.base, self.outside, self.broken, self.errors = base, [], [], []
        self.context.route("**/*", self._guard)
        self.page = self.context.new_page()
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.on("console", self._listen)
        self.page.on("requestfailed", self._failed)
        self.page.on("response", self._answered)

    def _guard(self, route) -> None:
        if route.request.url.startswith((self.base, "data:", "blob:")):
            route.continue_()
        else:
            self.outside.append(route.request.url)
            route.abort()

    def _failed(self, request) -> None:
        # a click on a link aborts what its page was still loading; that is no fault
        if request.failure != "net::ERR_ABORTED":
            self.broken.append(request.url)

    def _listen(self, message) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _answered(self, response) -> None:
        if response.status >= 400:
            self.broken.append(response.url)

    def open(self, path: str):
        """Go to a page and wait until its maths and widgets are there."""
        self.page.goto(f"{self.base}/{path}")
        # not wait_for_function: it evaluates a string, which the page's policy forbids
        for _ in range(600):
            if self.page.evaluate(READY):
                return self.page
            self.page.wait_for_timeout(100)
        raise AssertionError(f"{path}: maths or widgets were not ready in a minute")

    def clean(self) -> None:
        """Nothing was asked of the outside, nothing failed."""
        assert self.outside == [] and self.broken == [] and self.errors == []


@pytest.fixture
def visit(browser):
    """Open a visitor: `visit(base, viewport=..., color_scheme=...)`."""
    visitors = []

    def make(base: str, **options) -> Visitor:
        visitors.append(Visitor(browser, base, **options))
        return visitors[-1]

    yield make
    for visitor in visitors:
        visitor.context.close()
