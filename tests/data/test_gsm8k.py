"""Loading: the right rows, the right refusals, and always the source by name."""

from __future__ import annotations

import hashlib
import json
import sys
from fractions import Fraction

import pytest

from dapo_lib.data.gsm8k import from_rows, load_gsm8k, problem, resolve_data
from dapo_lib.errors import BadInput

ROW = {"question": "2 pens at $3 each?", "answer": "2*3 = <<2*3=6>>6\n#### 6"}


def write(folder, split="train", lines=(ROW,)):
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(
        (line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines
    )
    path = folder / f"{split}.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "gsm8k", "train", [ROW, ROW])
    write(tmp_path / "gsm8k", "test")
    return tmp_path


def test_a_row_becomes_a_problem(folder):
    first, _ = load_gsm8k(folder / "gsm8k", "train")
    assert first.question == ROW["question"]
    assert first.answer == 6 and first.answer_text == "6"
    assert first.annotations == (("2*3", "6"),)
    assert len(load_gsm8k(folder / "gsm8k", "train", limit=1)) == 1


@pytest.mark.parametrize(
    ("text", "answer"),
    [("1,080", 1080), ("-5", -5), ("0.5", Fraction(1, 2)), ("034", 34)],
)
def test_answers_are_exact(text, answer):
    loaded = problem("q?", f"so\n#### {text}")
    assert loaded.answer == answer and loaded.answer_text == text


BROKEN = {
    "{not json": "not JSON",
    "": "not JSON",
    "[1, 2]": "a list",
    '{"question": "q"}': "no answer",
    "{}": "no question and no answer",
    '{"question": 1, "answer": "#### 1"}': "not text",
    '{"question": " ", "answer": "#### 1"}': "empty text",
    '{"question": "q", "answer": "no mark"}': "####",
    '{"question": "q", "answer": "#### 1 #### 2"}': "####",
    '{"question": "q", "answer": "#### many"}': "#### many",
    '{"question": "q", "answer": "####"}': "NUMBER",
    '{"question": "q", "answer": "<<1+1>>2 #### 2"}': "annotation",
    "[" * 100_000: "not JSON",
}


@pytest.mark.parametrize(("line", "wanted"), BROKEN.items(), ids=range(len(BROKEN)))
def test_a_broken_line_is_named(tmp_path, line, wanted):
    write(tmp_path, lines=[ROW, line, ROW])
    with pytest.raises(BadInput, match=r"train\.jsonl, line 2: ") as caught:
        load_gsm8k(tmp_path, "train")
    assert wanted in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_or_empty_file_is_named(tmp_path):
    with pytest.raises(BadInput, match="no such file"):
        load_gsm8k(tmp_path, "train")
    (tmp_path / "train.jsonl").write_text(" \n")
    with pytest.raises(BadInput, match="empty file"):
        load_gsm8k(tmp_path, "train")
    (tmp_path / "train.jsonl").write_bytes(json.dumps(ROW).encode() + b"\n\xff\xfe")
    with pytest.raises(BadInput, match="line 2: not UTF-8"):
        load_gsm8k(tmp_path, "train")


def test_line_separators_inside_a_text_do_not_split_a_row(tmp_path):
    row = ROW | {"question": "a\u2028b?"}
    write(tmp_path, lines=[json.dumps(row, ensure_ascii=False)])
    assert load_gsm8k(tmp_path, "train")[0].question == row["question"]


def test_the_folder_may_be_the_root_or_gsm8k_itself(folder, monkeypatch):
    digest = hashlib.sha256((folder / "gsm8k/train.jsonl").read_bytes()).hexdigest()
    for path in (folder, folder / "gsm8k"):
        source = resolve_data(path).source
        assert source.name == "gsm8k" and source.rows == {"train": 2, "test": 1}
        assert source.sha256["train"] == digest
        monkeypatch.setenv("DAPO_DATA", str(path))
        assert resolve_data(offline=True).source == source
    assert str(folder) not in json.dumps(source.as_dict())


def test_a_wrong_folder_is_an_error_not_other_data(tmp_path, monkeypatch):
    with pytest.raises(BadInput, match="data: got"):
        resolve_data(tmp_path, offline=True)
    monkeypatch.setenv("DAPO_DATA", str(tmp_path))
    with pytest.raises(BadInput, match="DAPO_DATA: got"):
        resolve_data(offline=True)
    write(tmp_path)
    with pytest.raises(BadInput, match=r"test\.jsonl: no such file"):
        resolve_data()


def test_without_the_library_or_the_network_the_remedy_is_said(monkeypatch):
    monkeypatch.delenv("DAPO_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(BadInput, match=r"dapo-book\[data\].*--offline"):
        resolve_data()

    class Broken:
        @staticmethod
        def load_dataset(*_):
            raise ConnectionError("no route")

    monkeypatch.setitem(sys.modules, "datasets", Broken)
    with pytest.raises(BadInput, match=r"ConnectionError.*--offline"):
        resolve_data()


def test_rows_of_the_hub_are_read_as_a_file_is(folder, monkeypatch):
    monkeypatch.delenv("DAPO_DATA", raising=False)

    class Library:
        @staticmethod
        def load_dataset(name, subset):
            assert (name, subset) == ("openai/gsm8k", "main")
            return {"train": [ROW, ROW], "test": [ROW]}

    monkeypatch.setitem(sys.modules, "datasets", Library)
    data, local = resolve_data(), resolve_data(folder)
    assert data.source.name == "openai/gsm8k"
    assert data.train == local.train
    assert data.source.sha256 == local.source.sha256
    broken = {"train": [ROW], "test": [ROW | {"answer": "none"}]}
    with pytest.raises(BadInput, match="test, line 1"):
        from_rows("openai/gsm8k", broken)


@pytest.mark.data
def test_the_real_files(gsm8k):
    assert gsm8k.source.rows == {"train": 7473, "test": 1319}
    assert [p.answer for p in gsm8k.train[:3]] == [72, 10, 5]
    assert all(p.answer.denominator == 1 for p in gsm8k.train + gsm8k.test)
