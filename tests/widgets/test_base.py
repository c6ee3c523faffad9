"""Traits, words and data checks on the Python side."""

from __future__ import annotations

import json
import re

import pytest
import traitlets

from dapo_lib import widgets
from dapo_lib.errors import BadInput
from dapo_lib.labels import LANGS
from dapo_lib.widgets.base import asset, compact, module_text, texts_of

CLASSES = [getattr(widgets, name) for name in widgets.__all__]
NAMES = [cls.name for cls in CLASSES]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lang", LANGS)
def test_each_describes_itself_in_both_languages(name: str, lang: str, samples) -> None:
    said = samples.make(name, lang).describe()
    assert len(said) > 20 and "{" not in said
    assert bool(re.search("[\u4e00-\u9fff]", said)) == (lang == "zh")


@pytest.mark.parametrize("name", NAMES)
def test_a_widget_with_its_data_fits_its_budget(name: str, samples) -> None:
    widget = samples.make(name)
    state = {k: v for k, v in widget.get_state().items() if k[0] != "_"}
    text = json.dumps(state, ensure_ascii=False, separators=(",", ":"))
    size = len(text.encode())
    size += len(widget._esm.encode()) + len(widget._css.encode())
    assert size < 60_000, f"{name}: {size} bytes"


@pytest.mark.parametrize("name", NAMES)
def test_modules_are_self_contained_and_use_known_words(name: str) -> None:
    text = module_text(name)
    assert "import " not in text.replace("import(", "")
    assert "innerHTML" not in text and "eval(" not in text
    words = texts_of(name, "en")
    used = set(re.findall(r"ui\.t\(\"(\w+)\"", asset(f"{name}.mjs")))
    assert used <= set(words), sorted(used - set(words))


def test_no_word_is_left_over() -> None:
    for name in NAMES:
        text = asset(f"{name}.mjs") + asset("kit.mjs") + asset(f"{name}.py")
        for key in texts_of(name, "en"):
            tail = key.rsplit("_", 1)[-1]
            known = f'"{key}"' in text or f"_{tail}`" in text or f'_{tail}"' in text
            assert known or f'["{key}"' in text or key in text, f"{name}.{key}"


def test_values_out_of_range_are_refused_by_name() -> None:
    with pytest.raises(traitlets.TraitError, match="eps_low"):
        widgets.EpsilonExplorer(eps_low=-0.1)
    with pytest.raises(BadInput, match="lang: got 'fr'"):
        widgets.EpsilonExplorer("fr")
    with pytest.raises(BadInput, match=r"EpsilonExplorer: got epsilon_low.*eps_low"):
        widgets.EpsilonExplorer(epsilon_low=0.1)
    with pytest.raises(BadInput, match="l_cache: got 30"):
        widgets.OverlongExplorer(l_max=20, l_cache=30)


def test_runs_that_do_not_fit_are_refused_by_name(samples) -> None:
    runs = samples.runs()
    runs["data"]["arm1"]["accuracy"]["low"] = [0.0]
    with pytest.raises(BadInput, match=r"runs\.data\.arm1: got lengths \[1, 30\]"):
        widgets.MechanismToggles(runs=runs)
    runs = samples.runs()
    runs["arms"][0]["on"] = ["typo"]
    with pytest.raises(BadInput, match="typo"):
        widgets.MechanismToggles(runs=runs)
    leaks = samples.leaks()
    leaks["sets"][1]["removed"] = ["typo"]
    with pytest.raises(BadInput, match="typo"):
        widgets.LeakRemover(runs=leaks)
    trap = samples.traps()[0]
    with pytest.raises(BadInput, match="a key of its own"):
        widgets.TrapExplorer(traps=[trap, trap])


def test_the_leak_remover_s_interval_is_student_s(samples) -> None:
    widget = widgets.LeakRemover(runs=samples.leaks())
    one = widget.runs["sets"][0]
    assert one["low"] < one["mean"] < one["high"]
    single = samples.leaks() | {"sets": [{"removed": [], "values": [0.5]}]}
    assert "low" not in widgets.LeakRemover(runs=single).runs["sets"][0]


def test_compact_leaves_no_nan() -> None:
    data = {"a": [float("nan"), float("inf"), 1 / 3], "b": {"c": (1, "x", None, True)}}
    assert compact(data) == {
        "a": [None, None, 0.3333],
        "b": {"c": [1, "x", None, True]},
    }


def test_a_change_of_language_brings_the_words_along() -> None:
    widget = widgets.VerifierExplorer("en")
    assert widget.texts["mode"] == "Mode"
    widget.lang = "zh"
    assert widget.texts["mode"] == "模式" and "正确" in widget.texts["reason_same"]


def test_traits_link_and_are_observed_in_jupyter() -> None:
    a, b = widgets.EpsilonExplorer(), widgets.EpsilonExplorer()
    seen = []
    a.observe(lambda change: seen.append(change["new"]), "eps_high")
    traitlets.link((a, "eps_high"), (b, "eps_high"))
    b.eps_high = 0.5
    assert a.eps_high == 0.5 and seen == [0.5]
