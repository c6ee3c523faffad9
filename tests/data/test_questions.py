"""Questions from files: what is read, what is dropped, what is refused."""

from __future__ import annotations

import json
import sys

import pytest

from dapo_lib.data.questions import read_questions
from dapo_lib.errors import BadInput, DamagedFile


def write(path, rows):
    path.write_text("\n".join(json.dumps(r) for r in rows) + "\n\n")
    return path


def test_a_gsm8k_line_becomes_a_prompt(tmp_path):
    row = {"question": "How many {x}?", "answer": "2*9=18\n#### 18"}
    path = write(tmp_path / "a.jsonl", [row])
    found = read_questions(path, prompt="{question}\nGo.")
    assert found.rows[0].text == "How many {x}?\nGo."
    assert found.rows[0].answer == "18"


def test_verl_s_schema_is_read_as_it_is(tmp_path):
    messages = [{"role": "system", "content": "S"}, {"role": "user", "content": "Q"}]
    row = {"prompt": messages, "reward_model": {"ground_truth": "34"}}
    found = read_questions(write(tmp_path / "a.jsonl", [row]), format="verl")
    assert found.rows[0].messages == messages
    assert found.rows[0].text == "S\n\nQ"


def test_rows_without_a_readable_reference_are_counted(tmp_path):
    rows = [{"question": "a", "answer": x} for x in ("7", "a prime", "1/2")]
    found = read_questions(write(tmp_path / "a.jsonl", rows))
    assert len(found.rows) == 2 and found.dropped == 1
    with pytest.raises(BadInput, match="no row"):
        read_questions(write(tmp_path / "b.jsonl", rows[1:2]))
    # a fraction is no answer in AIME's mode
    assert len(read_questions(tmp_path / "a.jsonl", mode="aime").rows) == 1


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ('{"question": "a"}\n', BadInput, r"row 1: has question"),
        ("[1, 2]\n", BadInput, "row 1"),
        ('{"question": "a", "answer": "1"}\nnonsense\n', DamagedFile, "line 2"),
        ("", BadInput, "no row"),
        ("\udcff", DamagedFile, "line 1"),
    ],
)
def test_what_cannot_be_read_says_where(tmp_path, text, error, said):
    path = tmp_path / "a.jsonl"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(error, match=said):
        read_questions(path)


@pytest.mark.parametrize("name", ["none.jsonl", "none.parquet", "none.json"])
def test_a_missing_file_is_named_and_looked_for_nowhere_else(
    tmp_path, monkeypatch, name
):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(BadInput, match=r"no such file$"):
        read_questions(tmp_path / name)


def test_a_folder_is_its_files_and_of_several_splits_the_train_files(tmp_path):
    def numbered(name, *answers):
        rows = [{"question": name, "answer": str(a)} for a in answers]
        return write(tmp_path / f"{name}.jsonl", rows)

    numbered("b", 3)
    numbered("a", 1, 2)
    (tmp_path / "README.md").write_text("not data")
    assert [q.answer for q in read_questions(tmp_path).rows] == ["1", "2", "3"]
    numbered("train-1", 5)
    numbered("train-0", 4)
    assert [q.answer for q in read_questions(tmp_path).rows] == ["4", "5"]
    write(tmp_path / "train-1.jsonl", [{"question": "q", "answer": "1"}, {"q": "x"}])
    with pytest.raises(BadInput, match=r"train-1\.jsonl, row 2: has q; expected"):
        read_questions(tmp_path)


def test_a_folder_without_data_is_refused(tmp_path):
    with pytest.raises(BadInput, match="nor a folder of"):
        read_questions(tmp_path)


@pytest.mark.parametrize("mark", ["state.json", "dataset_dict.json"])
def test_a_saved_data_set_without_the_package_says_what_to_install(
    tmp_path, monkeypatch, mark
):
    (tmp_path / mark).write_text("{}")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(BadInput, match=r"saved data set needs.*dapo-book\[data\]"):
        read_questions(tmp_path)
    with pytest.raises(BadInput, match=r"name needs.*dapo-book\[data\]"):
        read_questions("openai/gsm8k:main:train")
