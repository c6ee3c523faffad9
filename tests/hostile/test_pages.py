"""What data can do to a page: nothing. Markup stays text, foreign code stays out."""

from __future__ import annotations

import copy
import json
import re
from html.parser import HTMLParser

import pytest

from dapo_lib import plots, show
from dapo_lib.errors import BadInput, DamagedFile
from dapo_lib.experiments import published
from dapo_lib.experiments.records import Record
from dapo_lib.publish import conformance_page, metrics_page
from dapo_lib.publish.outputs import STATE, VIEW, Page
from dapo_lib.publish.reference import Row
from dapo_lib.widgets import EpsilonExplorer, VerifierExplorer
from dapo_lib.widgets.base import module_text, style_text

EVIL = (
    '<script>alert(1)</script><img src=x onerror="alert(1)"> " \' --> ]]> | ` \n\n## x'
)


class Tags(HTMLParser):
    """The elements and event handlers of a piece of HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def harmless(html: str) -> bool:
    seen = Tags(html)
    return not seen.handlers and not {"script", "iframe", "object"} & set(seen.tags)


def test_the_check_can_fail():
    assert not harmless(EVIL) and harmless("<b>fine</b>")


@pytest.fixture
def displayed(monkeypatch):
    """What is given to IPython's display."""
    bundles: list[dict] = []
    monkeypatch.setattr(
        "IPython.display.display", lambda data, **_: bundles.append(data)
    )
    return bundles


def test_tables_of_data(displayed):
    show.table([{EVIL: EVIL, "n": 1.5}], caption=EVIL)
    html = displayed[0]["text/html"]
    assert harmless(html) and html.count("&lt;script&gt;") == 3


def test_figures_of_data():
    fig, ax = plots.figure("en")
    ax.plot([0, 1], [0, 1], label=EVIL.replace("\n", " "))
    ax.set_title("<script>alert(1)</script>")
    ax.legend()
    bundle = plots.bundle(fig, alt=f"It says {EVIL}", caption=EVIL)
    page = Page()
    book = {"cells": [{"outputs": [{"data": bundle}]}], "metadata": {}}
    page.rewrite(book, "../_images")
    assert harmless(book["cells"][0]["outputs"][0]["data"]["text/html"])
    assert all(harmless(svg) for svg in page.files.values()) and len(page.files) == 2


def test_metrics_of_data():
    record = Record(name="clip.gain_028", value=0.5, unit=EVIL, paper=1.0, source=EVIL)
    text = metrics_page._table([Row("03_x", record, None)], "en")
    (line,) = [x for x in text.splitlines() if "clip.gain_028" in x]
    assert harmless(text) and "&lt;script&gt;" in line
    assert line.count(" | ") == len(metrics_page.COLUMNS) - 1
    assert "\n## x" not in text


@pytest.mark.parametrize("name", ["../x", "a b", "<b>", ""])
def test_names_of_records_are_plain(name):
    with pytest.raises(ValueError, match="name"):
        Record(name=name, value=1.0)


def test_the_matrix_of_data():
    frame = published.load("conformance")
    row = frame.index[frame["verdict"] == "wrong"][0]
    frame = frame.astype(object)
    for column in ("input", "value", "right"):
        frame.loc[row, column] = EVIL
    text = "\n".join(conformance_page.parts(frame, "en").values())
    # in code, on one line: Markdown shows it letter for letter
    for line in text.splitlines():
        if "script" in line:
            bare = re.sub(r"`[^`]*`", "", line)
            assert "script" not in bare and "onerror" not in bare
    assert "\n## x" not in text


def state_of(widget) -> dict:
    plain = {k: v for k, v in widget.get_state().items() if isinstance(k, str)}
    return {"model_name": "AnyModel", "state": plain}


def book_with(state: dict) -> dict:
    outputs = [{"data": {VIEW: {"model_id": "a"}}}]
    widgets = {STATE: {"state": {"a": state}}}
    return {"cells": [{"outputs": outputs}], "metadata": {"widgets": widgets}}


@pytest.mark.parametrize("make", [EpsilonExplorer, VerifierExplorer])
def test_a_widget_of_ours_is_taken(make):
    book = book_with(state_of(make()))
    Page().rewrite(book, "")
    html = book["cells"][0]["outputs"][0]["data"]["text/html"]
    assert f'"class":"{make.__name__}"' in html


TAMPERED = {
    "another module": {"_esm": "export default {render(){alert(1)}}"},
    "a line more": {"_esm": module_text("epsilon") + "\nalert(1)"},
    "another's module": {"_esm": module_text("verifier")},
    "another style": {"_css": style_text() + "body{background:url(//x)}"},
    "no style": {"_css": None},
    "no class of ours": {"_anywidget_id": "evil.Explorer"},
    "a class by path": {"_anywidget_id": "os.path"},
    "a dunder": {"_anywidget_id": "x.__all__"},
    "no name": {"_anywidget_id": None},
    "a number for a module": {"_esm": 3},
    "not finite": {"eps_low": float("nan")},
}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED)
def test_a_tampered_widget_stops_the_page(change):
    state = state_of(EpsilonExplorer())
    state["state"] |= change
    with pytest.raises(DamagedFile, match="execute the notebook again"):
        Page().rewrite(book_with(state), "")


SHAPES = [
    None,
    [],
    "x",
    3,
    {},
    {"state": None},
    {"state": []},
    {"model_name": "LinkModel"},
]


@pytest.mark.parametrize("shape", SHAPES, ids=map(repr, SHAPES))
def test_a_state_of_another_shape_is_named(shape):
    with pytest.raises(DamagedFile):
        Page().rewrite(book_with(shape), "")


def test_texts_in_a_state_cannot_end_the_block():
    state = state_of(EpsilonExplorer())
    state["state"]["texts"] = {"title": EVIL, "</script>": "<!--<script>"}
    book = book_with(copy.deepcopy(state))
    Page().rewrite(book, "")
    html = book["cells"][0]["outputs"][0]["data"]["text/html"]
    assert Tags(html).tags == ["div", "script"] and html.count("</script>") == 1
    block = re.search(r'id="dapo-widgets">(.*)</script>$', html, re.S)[1]
    assert json.loads(block)["models"]["w1"]["state"]["texts"]["title"] == EVIL


def test_traits_refuse_what_a_reader_could_not_set():
    for bad in ({"eps_low": 2.0}, {"eps_high": "<b>"}, {"lang": "../en"}):
        with pytest.raises(Exception, match=r"eps|lang"):
            EpsilonExplorer(**bad)
    with pytest.raises(BadInput, match="expected one of"):
        EpsilonExplorer(_esm="alert(1)")
