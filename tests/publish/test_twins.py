"""A stale or unequal translation is found, named and mendable."""

from __future__ import annotations

import pytest

from dapo_lib.errors import BadInput
from dapo_lib.publish import pipeline, prose, text, twins


def edit(layout, cell_id, old, new):
    path = layout.notebooks / "01_small.ipynb"
    notebook = prose.read(path)
    for cell in notebook["cells"]:
        if cell["id"] == cell_id:
            assert old in cell["source"]
            cell["source"] = cell["source"].replace(old, new)
    text.write(path, notebook)


def test_unstamped_twin_is_stale_and_stamping_mends_it(layout):
    assert any("stale" in f for f in twins.faults(layout))
    assert twins.stamp(layout) == ["01_small.ipynb title-zh"]
    assert twins.faults(layout) == []
    pipeline.check_sources(layout)


def test_changed_english_with_untouched_twin_fails(layout):
    twins.stamp(layout)
    edit(layout, "title-en", "It is", "It was")
    (fault,) = twins.faults(layout)
    assert (
        "01_small.ipynb" in fault and "title-zh" in fault and "dapo book stamp" in fault
    )
    with pytest.raises(BadInput, match="stale"):
        pipeline.check_sources(layout)


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("$x$", "$y$", "maths"),
        ("## 一", "### 一", "headings"),
        ("(small-one)=", "(small-two)=", "labels"),
        ("{result}`gain .2f`", "0.50", "roles"),
        ("它是", "```{note}\n它是\n```\n", "directives"),
        ("它是", "它是 {cite}`dapo`", "roles"),
        ("它是", "[它](#small-one) 是", "links"),
    ],
)
def test_every_part_of_the_skeleton_counts(layout, old, new, kind):
    twins.stamp(layout)
    edit(layout, "title-zh", old, new)
    assert any(f"{kind} differ" in fault for fault in twins.faults(layout))


def test_missing_twin_untagged_prose_and_unlabelled_heading(layout):
    twins.stamp(layout)
    path = layout.notebooks / "01_small.ipynb"
    notebook = prose.read(path)
    chinese = notebook["cells"].pop(2)
    text.write(path, notebook)
    assert any("no lang-zh twin" in f for f in twins.faults(layout))
    chinese["metadata"]["tags"] = []
    notebook["cells"].insert(2, chinese)
    text.write(path, notebook)
    assert any("needs the tag" in f for f in twins.faults(layout))
    english = text.load("%% a en\n# T\n\n## No label\n\n%% a zh\n# T\n\n## No\n")
    text.write(path, english)
    twins.stamp(layout)
    assert any("(label)= line" in f for f in twins.faults(layout))


def test_pages_are_compared_too(layout):
    (layout.root / "book/en/page.md").write_text("# Page $x$\n", encoding="utf-8")
    assert any("one language only" in f for f in twins.faults(layout))
    (layout.root / "book/zh/page.md").write_text("# 页 $x$\n", encoding="utf-8")
    assert any("page.md: stale" in f for f in twins.faults(layout))
    twins.stamp(layout)
    assert twins.faults(layout) == []
    twins.stamp(layout)  # idempotent
    body = (layout.root / "book/zh/page.md").read_text("utf-8")
    assert body.count("source_hash") == 1


def test_formula_on_its_own_needs_no_twin(layout):
    path = layout.notebooks / "01_small.ipynb"
    text.write(path, text.load("%% f both\n$$\nx = 1\n$$\n"))
    assert twins.faults(layout) == []
