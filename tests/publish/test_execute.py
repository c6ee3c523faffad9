"""Execution: what is refused, what fails loudly, what is not repeated."""

from __future__ import annotations

import pytest

from dapo_lib.errors import BadInput, DapoError
from dapo_lib.publish import execute, prose, reference, text
from dapo_lib.publish.layout import Layout


def test_undeclared_or_mistyped_parameters_are_refused(layout):
    notebook = layout.notebooks / "01_small.ipynb"
    with pytest.raises(BadInput, match=r"no parameter 'fast'; declared: lang, seed"):
        execute.plan(layout, notebook, "en", {"fast": True})
    with pytest.raises(BadInput, match=r"seed='1', expected a int"):
        execute.plan(layout, notebook, "en", {"seed": "1"})


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("%% a code\n1", "one cell tagged parameters, found 2"),
        ("", "one `name = literal` a line"),
    ],
)
def test_parameters_cell_is_one_plain_cell(source, what):
    notebook = text.load(source)
    extra = text.load("%% p code parameters\nlang, seed = 1, 2")["cells"]
    notebook["cells"] = (notebook["cells"] if source else []) + extra
    with pytest.raises(BadInput, match=what):
        prose.parameters(notebook, "x.ipynb")


def test_runs_once_records_and_notices_a_change(layout, capfd):
    chapters = layout.chapters()
    assert execute.execute(layout, chapters, ("en", "zh")) == 2
    assert execute.execute(layout, chapters, ("en", "zh")) == 0
    (row,) = reference.collect(layout)
    assert row.record.value == 0.5 and row.accepted is None
    executed = prose.read(layout.executed("zh") / "01_small.ipynb")
    assert "papermill" not in executed["metadata"]
    text_ = (layout.executed("zh") / "01_small.ipynb").read_text("utf-8")
    assert str(layout.root) not in text_
    source = prose.read(chapters[0])
    source["cells"][-1]["source"] += "\n# changed"
    text.write(chapters[0], source)
    assert not execute.fresh(layout, execute.plan(layout, chapters[0], "en"))


def test_failing_notebook_names_notebook_and_cell(layout):
    path = layout.notebooks / "02_bad.ipynb"
    text.write(path, text.load("%% fine code\n1\n\n%% breaks code\n1 / 0"))
    with pytest.raises(DapoError, match=r"02_bad.ipynb \[en\]: cell 'breaks': ZeroDiv"):
        execute.execute(layout, [path], ("en",))
    assert not (layout.executed("en") / "02_bad.ipynb").exists()


def test_cell_time_limit(layout, monkeypatch):
    monkeypatch.setattr(execute, "CELL_SECONDS", 1)
    path = layout.notebooks / "02_slow.ipynb"
    text.write(path, text.load("%% sleeps code\nimport time\ntime.sleep(30)"))
    with pytest.raises(
        DapoError, match=r"02_slow.ipynb \[en\]: cell 'sleeps': over 1 s"
    ):
        execute.execute(layout, [path], ("en",))


def test_notebook_time_limit(layout, monkeypatch):
    monkeypatch.setattr(execute, "NOTEBOOK_SECONDS", 0.5)
    with pytest.raises(DapoError, match=r"01_small.ipynb \[en\]: over 0.5 s"):
        execute.execute(layout, layout.chapters(), ("en",))


def test_select_refuses_unknown_notebooks(layout):
    assert Layout(layout.root).select(["01"]) == layout.chapters()
    with pytest.raises(BadInput, match="--only 77: no such notebook; known: 01_small"):
        layout.select(["77"])
