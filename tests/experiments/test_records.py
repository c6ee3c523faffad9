"""Records of a notebook, and published tables: checked when read."""

import pandas as pd
import pytest

from dapo_lib.errors import BadInput, DamagedFile
from dapo_lib.experiments import published
from dapo_lib.experiments.records import Recorder, load_records, merge
from dapo_lib.experiments.statistics import mean_interval


def test_records_come_back_as_they_were(tmp_path):
    recorder = Recorder("03_clip", "en", tmp_path)
    recorder.record("clip.gain", mean_interval([0.1, 0.2, 0.3]), unit="accuracy")
    recorder.record("clip.paper", 50, paper=50, tolerance=0.5)
    found = load_records(tmp_path / "03_clip.en.json")
    assert found == recorder.records
    assert found["clip.gain"].seeds == 3


def test_two_languages_write_the_same_bytes_but_for_the_language(tmp_path):
    for lang in ("en", "zh"):
        Recorder("n", lang, tmp_path).record("a", 1 / 3)
    texts = [(tmp_path / f"n.{lang}.json").read_text() for lang in ("en", "zh")]
    differing = [a for a, b in zip(*map(str.splitlines, texts), strict=True) if a != b]
    assert [line.split('"')[1] for line in differing] == ["lang", "sha256"]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_refused(tmp_path, value):
    with pytest.raises(BadInput, match=r"record 'a\.b'"):
        Recorder("n", "en", tmp_path).record("a.b", value)


def test_a_name_is_used_once(tmp_path):
    recorder = Recorder("n", "en", tmp_path)
    recorder.record("a", 1.0)
    recorder.record("a", 1.0)  # a cell run twice
    with pytest.raises(BadInput, match="twice"):
        recorder.record("a", 2.0)
    Recorder("m", "en", tmp_path).record("a", 1.0)
    with pytest.raises(BadInput, match="another notebook"):
        merge(sorted(tmp_path.glob("*.json")))


def test_a_published_table_keeps_its_provenance_and_its_checksum(tmp_path):
    frame = pd.DataFrame({"arm": ["dapo", "naive"], "acc": [0.1 + 0.2, 1 / 3]})
    published.save("ladder", frame, {"seeds": 10}, tmp_path)
    again = published.load("ladder", tmp_path)
    assert again.attrs == {"seeds": 10}
    assert (again.acc - frame.acc).abs().max() < 1e-9
    path = tmp_path / "ladder.csv"
    path.write_text(path.read_text().replace("dapo", "naive", 1))
    with pytest.raises(DamagedFile, match=r"ladder\.csv"):
        published.load("ladder", tmp_path)
    with pytest.raises(BadInput, match="known: ladder"):
        published.load("table", tmp_path)
