"""Whatever a name says, nothing is read or written outside its folder."""

from __future__ import annotations

import os

import pandas as pd
import pytest

from dapo_lib.errors import BadInput
from dapo_lib.experiments import published
from dapo_lib.experiments.records import Recorder
from dapo_lib.files import inside
from dapo_lib.publish.layout import Layout

NAMES = [
    "../a",
    "..",
    ".",
    "",
    "/etc/passwd",
    "a/b",
    "a\\b",
    ".hidden",
    "a\x00b",
    "./a",
]


@pytest.mark.parametrize("name", NAMES, ids=map(repr, NAMES))
def test_a_name_with_a_way_out_is_refused(tmp_path, name):
    folder = tmp_path / "in"
    folder.mkdir()
    with pytest.raises(BadInput, match="plain name"):
        inside(folder, name)
    if name:  # with a suffix, "" and "." hide the file only
        with pytest.raises(BadInput, match="plain name"):
            published.load(name, folder)
        with pytest.raises(BadInput, match="plain name"):
            published.save(name, pd.DataFrame({"a": [1]}), {}, folder)
        with pytest.raises(BadInput, match="plain name"):
            Recorder(name, "en", folder=folder).record("a", 1.0)
    assert os.listdir(tmp_path) == ["in"] and not os.listdir(folder)


@pytest.mark.parametrize("name", ["a b", "ü", "a\nb", "'; rm", "-x", "a..b", "名"])
def test_odd_but_plain_names_are_used_as_they_are(tmp_path, name):
    Recorder(name, "en", folder=tmp_path).record("a", 1.0)
    assert os.listdir(tmp_path) == [f"{name}.en.json"]


def test_a_notebook_is_chosen_from_those_that_exist(tmp_path):
    layout = Layout(tmp_path)
    layout.notebooks.mkdir()
    (layout.notebooks / "01_a.ipynb").write_text("{}")
    (tmp_path / "02_b.ipynb").write_text("{}")
    for name in ("../02", "..", "/", "02_b", "*"):
        with pytest.raises(BadInput, match="no such notebook"):
            layout.select([name])


def test_a_text_becomes_a_notebook_of_the_book_or_nothing(dapo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "_toc.yml").write_text("")
    (tmp_path / "notebooks").mkdir()
    for name in ("evil.md", "04_X.md", "04_x y.md", "4_x.md", "04_x\n.md", ".md"):
        (tmp_path / name).write_text("%% a code\n1\n")
        code, out, err = dapo("book", "from-text", name)
        assert code == 2 and out == "" and err.count("\n") == 1
    (tmp_path / "up").mkdir()
    (tmp_path / "04_x.md").write_text("%% a code\n1\n")
    code, _, err = dapo("book", "from-text", "up/../04_x.md")
    assert code == 0, err
    assert os.listdir(tmp_path / "notebooks") == ["04_x.ipynb"]
