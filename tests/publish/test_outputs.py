"""Figures and widgets of an executed notebook become static, safe HTML."""

from __future__ import annotations

import json
import re

import pytest

from dapo_lib import plots
from dapo_lib.errors import BadInput, DamagedFile
from dapo_lib.publish import outputs
from dapo_lib.publish.outputs import FIGURE, STATE, VIEW, Page
from dapo_lib.widgets.base import module_text, style_text


def notebook(*data, state=None):
    cells = [{"outputs": [{"data": d} for d in data]}]
    widgets = {STATE: {"state": state}} if state else {}
    return {"cells": cells, "metadata": {"widgets": widgets}}


def explorer(**state):
    code = {"_esm": module_text("epsilon"), "_css": style_text()}
    inner = {**code, "_anywidget_id": "a.b.EpsilonExplorer", **state}
    return {"model_name": "AnyModel", "state": inner}


def test_a_figure_becomes_two_images_with_alt_text_and_caption():
    fig, ax = plots.figure("en")
    ax.plot([0, 1], [1, 0])
    ax.set_title("title", color="black")
    data = plots.bundle(fig, alt='a "line" falls', caption="It <falls>.")
    page, book = Page(), notebook(data)
    page.rewrite(book, "../_images")
    html = book["cells"][0]["outputs"][0]["data"]["text/html"]
    assert html.count("<img") == 2 and 'alt="a &quot;line&quot; falls"' in html
    assert "<figcaption>It &lt;falls&gt;.</figcaption>" in html
    names = re.findall(r"\.\./_images/(\S+?\.svg)", html)
    light, dark = (page.files[n] for n in names)
    assert (
        plots.INK in light and plots.INK not in dark and plots.DARK[plots.INK] in dark
    )
    assert "<metadata>" not in light and "/usr/" not in light


@pytest.mark.filterwarnings("ignore::UserWarning")  # `make test` has no font yet
def test_drawing_twice_gives_the_same_bytes():
    def draw():
        fig, ax = plots.figure("zh")
        plots.curves(ax, [0, 1], {"DAPO": [[0, 1], [1, 2]], "GRPO": [[0, 0], [1, 1]]})
        plots.axis_labels(ax, "figures.updates", "figures.entropy", "zh")
        ax.legend()
        return plots.bundle(fig, alt="线")[FIGURE]

    assert draw() == draw()


@pytest.mark.parametrize("alt", ["", "  ", "figure.png", "see /home/me/x"])
def test_alt_text_is_a_sentence(alt):
    fig, _ = plots.figure("en")
    with pytest.raises(BadInput, match="alt"):
        plots.bundle(fig, alt=alt)


def test_widgets_are_renumbered_and_linked():
    link = {"source": ["IPY_MODEL_b", "x"], "target": ["IPY_MODEL_a", "y"]}
    state = {
        "a": explorer(x=1, layout="IPY_MODEL_z"),
        "b": explorer(x=2, text="</script><b>"),
        "l": {"model_name": "LinkModel", "state": link},
        "z": {"model_name": "LayoutModel", "state": {}},
    }
    book = notebook({VIEW: {"model_id": "b"}}, {VIEW: {"model_id": "a"}}, state=state)
    Page().rewrite(book, "")
    assert "widgets" not in book["metadata"]
    first, last = (o["data"]["text/html"] for o in book["cells"][0]["outputs"])
    assert first == '<div class="dapo-widget" data-model="w1"></div>'
    block = re.search(r'id="dapo-widgets">(.*)</script>$', last)[1]
    assert "<" not in block  # neither of the text nor of the module
    data = json.loads(block)
    assert data["models"]["w1"] == {
        "class": "EpsilonExplorer",
        "state": {"x": 2, "text": "</script><b>"},
    }
    assert data["models"]["w2"]["state"] == {"x": 1}
    expected = {"source": ["w1", "x"], "target": ["w2", "y"], "two_way": True}
    assert data["links"] == [expected]
    assert list(data["classes"]) == ["EpsilonExplorer"]


def test_stock_and_lost_widgets_stop_the_build():
    slider = {"s": {"model_name": "IntSliderModel", "state": {}}}
    with pytest.raises(DamagedFile, match="IntSliderModel needs a kernel"):
        Page().rewrite(notebook({VIEW: {"model_id": "s"}}, state=slider), "")
    with pytest.raises(DamagedFile, match="not saved"):
        Page().rewrite(notebook({VIEW: {"model_id": "gone"}}, state=slider), "")


def test_links_to_what_is_not_shown_are_left_out():
    ends = {"source": ["IPY_MODEL_a", "x"], "target": ["IPY_MODEL_b", "y"]}
    saved = {"a": explorer(), "l": {"model_name": "LinkModel", "state": ends}}
    assert outputs.page_models({"a": "w1"}, saved)["links"] == []
