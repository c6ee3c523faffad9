"""A small project in a temporary folder, so that no test touches the real build."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dapo_lib.publish import text
from dapo_lib.publish.layout import Layout

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = """\
%% title en
# A title $x$

(small-one)=
## One

It is {result}`gain .2f`.

%% title zh
# 标题 $x$

(small-one)=
## 一

它是 {result}`gain .2f`。

%% imports code
from dapo_lib.experiments.records import Recorder

record = Recorder("01_small", lang).record

%% run code
record("gain", 0.5, low=0.25, high=0.75, seeds=3, tolerance=0.1)
print(seed)
"""


@pytest.fixture
def layout(tmp_path) -> Layout:
    """A checkout with one chapter and the real configuration files."""
    for name in ("_config.yml", "_toc.yml", "package-lock.json"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "book", tmp_path / "book", ignore=_pages)
    made = Layout(tmp_path)
    text.write(made.notebooks / "01_small.ipynb", text.load(CHAPTER))
    return made


def _pages(folder, names):
    return [n for n in names if n.endswith(".md") or n == "reference"]


@pytest.fixture(autouse=True)
def at_home(monkeypatch):
    """A workflow may say where the book lives; these tests say it themselves."""
    for name in ("DAPO_REPOSITORY", "DAPO_SITE"):
        monkeypatch.delenv(name, raising=False)
