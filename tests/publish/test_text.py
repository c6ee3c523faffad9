"""The one-file form of a notebook goes there and back."""

from __future__ import annotations

import pytest

from dapo_lib.errors import BadInput
from dapo_lib.publish import prose, text, twins


def test_round_trip_keeps_ids_tags_and_hashes(layout):
    twins.stamp(layout)
    path = layout.notebooks / "01_small.ipynb"
    before = prose.read(path)
    assert text.load(text.dump(before), before) == before


def test_ids_are_readable_and_the_parameters_cell_comes_first(layout):
    cells = prose.read(layout.notebooks / "01_small.ipynb")["cells"]
    ids = [cell["id"] for cell in cells]
    assert ids == ["parameters", "title-en", "title-zh", "imports", "run"]


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("words", "line 1: text before"),
        ("%% A en\nx", "line 1: '%% A en'"),
        ("%% a de\nx", "expected"),
        ("%% a en\nx\n%% a en\ny", "id used twice"),
    ],
)
def test_faults_name_the_line(source, what):
    with pytest.raises(BadInput, match=what):
        text.load(source)
