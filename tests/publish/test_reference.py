"""Agreement of the two languages, drift against the reference, numbers in prose."""

from __future__ import annotations

import pytest

from dapo_lib.errors import BadInput, DapoError
from dapo_lib.experiments import published
from dapo_lib.experiments.records import Record, Recorder
from dapo_lib.labels import table
from dapo_lib.publish import around, chapter, metrics_page, numbers, prose, reference


def record(layout, lang, value=0.5, **facts):
    recorder = Recorder("01_small", lang, folder=layout.results)
    facts = {"low": 0.25, "high": 0.75, "seeds": 3, "tolerance": 0.1} | facts
    recorder.record("gain", value, **facts)


@pytest.fixture
def both(layout, monkeypatch):
    """Results of both languages, and words for the metric."""
    record(layout, "en")
    record(layout, "zh")
    monkeypatch.setitem(table(), "metrics.gain", {"en": "Gain", "zh": "增益"})
    return layout


def test_languages_must_agree(both):
    record(both, "zh", 0.5001)
    with pytest.raises(DapoError, match="01_small: gain differs by language"):
        reference.collect(both)
    record(both, "zh", 0.5001, unit="s")
    record(both, "en", 0.5, unit="s")
    assert len(reference.collect(both)) == 1  # seconds may differ


def test_missing_results_and_one_sided_records(both):
    Recorder("01_small", "zh", folder=both.results).record("other", 1)
    with pytest.raises(DapoError, match="one language only: gain, other"):
        reference.collect(both)
    (both.results / "01_small.zh.json").unlink()
    with pytest.raises(DapoError, match="recorded nothing"):
        reference.collect(both)


def test_drift_is_judged_by_the_tolerance_of_the_metric(both):
    assert "not in the reference" in reference.faults(reference.collect(both), both)[0]
    reference.accept(both, reference.collect(both))
    assert reference.faults(reference.collect(both), both) == []
    for value, faults in ((0.59, 0), (0.61, 1), (0.39, 1)):
        for lang in ("en", "zh"):
            record(both, lang, value)
        assert len(reference.faults(reference.collect(both), both)) == faults


def test_a_metric_that_disappears_is_a_fault(both):
    reference.accept(both, reference.collect(both))
    assert reference.faults([], both) == ["gain: in the reference, but not recorded"]


def test_the_page_of_each_language(both):
    assert len(metrics_page.write(both)) == 1
    zh = (both.generated / "metrics.zh.md").read_text("utf-8")
    assert "增益（`gain`）" in zh and "[0.25, 0.75]" in zh and "新增" in zh
    assert "Gain (`gain`)" in (both.generated / "metrics.en.md").read_text("utf-8")
    with pytest.raises(DapoError, match="no words for the metric 'nameless'"):
        metrics_page.metric_words("nameless", "en")


def test_numbers_in_prose(both):
    text = "01_small:gain .1%"
    assert numbers.render(both, text, "en", full=False) == "50.0%"
    full = numbers.render(both, text, "zh", full=True)
    assert full == "50.0%（95% 置信区间 [25.0%, 75.0%]，3 个种子）"
    with pytest.raises(BadInput, match="no record 'loss'; recorded: gain"):
        numbers.render(both, "01_small:loss", "en", full=False)
    with pytest.raises(BadInput, match=r"format '\.2q'"):
        numbers.render(both, "01_small:gain .2q", "en", full=False)


def test_clean_copies_are_in_one_language_with_numbers_filled_in(both, tmp_path):
    reference.accept(both, reference.collect(both))
    (path,) = chapter.export(both, "zh", tmp_path / "out")
    cells = prose.read(path)["cells"]
    text = "\n".join(prose.source(c) for c in cells)
    assert "它是 0.50。" in text and "It is" not in text and 'lang = "zh"' in text


def test_missing_executed_copy_is_fatal(layout):
    with pytest.raises(
        BadInput, match="no executed copy in zh; run `dapo book execute"
    ):
        chapter.executed(layout, "01_small", "zh")


def test_metrics_page_shows_the_seed_table_and_links_every_experiment():
    for lang in ("en", "zh"):
        table = metrics_page.seed_table(lang)
        for value in ("0.1641", "0.7578", "0.3126", "0.7996", "0.0000", "1.0870"):
            assert f"| {value} |" in table
        linked = metrics_page.experiments(lang)
        for name in published.names():
            assert f"data/{name}.csv" in linked


def test_all_numbers_as_one_table():
    entry = Record(name="a.b", value=0.5, low=0.25, high=0.75, seeds=3, paper=0.4)
    rows = [reference.Row("01_small", entry, None)]
    head, line = around.numbers_csv(rows).splitlines()
    cells = dict(zip(head.split(","), line.split(","), strict=True))
    assert cells["notebook"] == "01_small" and cells["paper"] == "0.4"
    assert cells["drift"] == "" and float(cells["high"]) == 0.75
