"""Grading a file: rows and broken lines, rates over problems, the command line."""

from __future__ import annotations

import csv
import json

import pytest

from dapo_lib import grading
from dapo_lib.cli import main
from dapo_lib.errors import BadInput
from dapo_lib.grading import Columns, grade, rates, read_rows, summary

COLUMNS = Columns("response", "reference", "id")


@pytest.fixture
def write(tmp_path):
    """Writes rows (objects) and raw lines (text) to a file and returns its path."""

    def to_file(*rows, name="answers.jsonl"):
        lines = [r if isinstance(r, str) else json.dumps(r) for r in rows]
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return to_file


def row(group, answer, reference="34"):
    return {"id": group, "response": f"Answer: {answer}", "reference": reference}


def report_of(path, columns=COLUMNS, mode="auto"):
    return grade(read_rows(path, columns), mode)


def test_rates_are_over_problems(write):
    rows = [row("a", a) for a in (34, 34, 1, 2)] + [row("b", a) for a in (1, 1, 34, 1)]
    by = {r["metric"]: r for r in rates(report_of(write(*rows)), [1, 2, 4])}
    assert (
        by["avg@4"]["mean"] == by["pass@1"]["mean"] == pytest.approx((0.5 + 0.25) / 2)
    )
    assert by["pass@2"]["mean"] == pytest.approx((1 - 1 / 6 + 1 - 3 / 6) / 2)
    assert by["pass@4"]["mean"] == 1.0
    assert by["maj@4"]["mean"] == 0.5
    assert by["maj@2"]["mean"] == 0.5
    assert all(r["problems"] == 2 for r in by.values())
    assert 0 <= by["avg@4"]["low"] < 0.375 < by["avg@4"]["high"] <= 1


def test_majority_counts_values_not_spellings(write):
    rows = [row("a", a, "1/2") for a in ("0.5", r"\frac12", "3", "3", "1/2")]
    by = {r["metric"]: r["mean"] for r in rates(report_of(write(*rows)))}
    assert by["maj@5"] == 1.0


def test_unequal_groups_say_how_many_problems_count(write):
    rows = [row("a", 34), row("a", 34), row("b", 1)]
    by = {r["metric"]: r for r in rates(report_of(write(*rows)), [1, 2])}
    assert by["avg"]["mean"] == 0.5 and by["avg"]["problems"] == 2
    assert by["pass@2"]["problems"] == 1


def test_all_right_is_not_certain(write):
    rows = [row(str(i), 34) for i in range(10)]
    (average, *_) = rates(report_of(write(*rows)))
    assert average["mean"] == 1.0 and average["low"] == pytest.approx(0.7225, abs=1e-3)


def test_an_unparsable_reference_removes_its_group(write):
    path = write(row("a", 34), row("b", 34, "x + 1"), row("b", 1, "x + 1"))
    numbers = summary(report_of(path))
    assert numbers["problems"] == 1 and numbers["groups_removed"] == 1
    assert numbers["reference_unparsable"] == 2 and numbers["wrong"] == 0
    assert numbers["metrics"][0]["mean"] == 1.0


def test_only_unparsable_references_leave_no_rate(write):
    numbers = summary(report_of(write(row("a", 34, "x"))))
    assert numbers["metrics"] == [] and numbers["problems"] == 0


def test_broken_lines_are_counted_with_number_and_reason(write):
    path = write(
        row("a", 34),
        '{"id": "a", "response": ',
        "[1, 2]",
        {"id": "a", "response": None, "reference": "34"},
        {"id": "a", "reference": "34"},
        {"id": True, "response": "34", "reference": "34"},
        {"id": "a", "response": [], "reference": "34"},
        "",
        "[" * 200_000,
        row("b", 34),
    )
    report = report_of(path)
    assert len(report.graded) == 2
    assert [b.line for b in report.broken] == [2, 3, 4, 5, 6, 7, 9]
    reasons = " | ".join(b.reason for b in report.broken)
    for said in (
        *("not JSON", "not an object but a list", "response is null", "no column"),
        *("id is true or false", "response is a list", "nested too deep"),
    ):
        assert said in reasons


def test_lists_dots_and_exact_decimals(write):
    path = write('{"out": {"texts": ["Answer: 0.1", "Answer: 1/10"]}, "gold": 0.10}')
    report = report_of(path, Columns("out.texts", "gold"))
    assert [o.verdict.correct for o in report.graded] == [True, True]
    assert [(o.line, o.sample) for o in report.graded] == [(1, 0), (1, 1)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no rows"),
        (b"\n \n", "no rows"),
        (b"hello\nworld\n", "no row can be graded; line 1: not JSON"),
        (b'{"answer": "1"}\n', "no row has the column 'response'; columns: answer"),
        (
            '{"response": "é"}\n'.encode("latin-1"),
            "line 1: byte 0xe9 at 14 is not UTF-8",
        ),
        ('{"response": "1"}\n'.encode("utf-16"), "this is UTF-16"),
        (b"\x1f\x8b\x08\x00", "this is gzip"),
    ],
)
def test_unusable_files_are_one_line_and_exit_2(tmp_path, capsys, content, said):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    out = tmp_path / "out.csv"
    columns = ["--response", "response", "--reference", "reference", "--csv", str(out)]
    assert main(["verify", str(path), *columns]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert said in captured.err
    assert not out.exists()


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(BadInput, match="cannot read"):
            list(read_rows(path, COLUMNS))


def test_a_utf8_mark_is_fine(tmp_path):
    path = tmp_path / "mark.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(row("a", 34)).encode())
    assert report_of(path).graded[0].verdict.correct is True


def test_command_prints_json_and_writes_the_reasons(write, tmp_path, capsys):
    path = write(row("a", 34), row("a", "3 4"), "oops", row("b", "34\ud800"))
    out = tmp_path / "reasons.csv"
    columns = ["--response", "response", "--reference", "reference", "--group", "id"]
    code = main(["verify", str(path), *columns, "--json", "--csv", str(out)])
    captured = capsys.readouterr()
    numbers = json.loads(captured.out)
    assert code == 0 and "line 3: not JSON" in captured.err
    assert (numbers["responses"], numbers["correct"], numbers["broken_lines"]) == (
        3,
        1,
        1,
    )
    assert numbers["reasons"]["several_values"] == 1
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == grading.CSV_COLUMNS and len(rows) == 4
    assert rows[1]["reason"] == "several_values" and rows[1]["extracted"] == "3 4"


def test_command_prints_a_table(write, capsys):
    columns = ["--response", "response", "--reference", "reference", "--group", "id"]
    assert main(["verify", str(write(row("a", 34), row("b", 1))), *columns]) == 0
    text = capsys.readouterr().out
    assert "2 responses to 2 problems" in text and "avg@1" in text and "95%" in text


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (["--k", "0"], "--k: got '0'"),
        (["--k", "two"], "--k: got 'two'"),
        (["--k", "9"], "k: got 9"),
        (["--mode", "maths"], "maths"),
        (["--csv", "/dev/null/x.csv"], "/dev/null"),
    ],
)
def test_bad_options_are_named(write, capsys, extra, said):
    columns = ["--response", "response", "--reference", "reference"]
    assert main(["verify", str(write(row("a", 34))), *columns, *extra]) == 2
    captured = capsys.readouterr()
    assert said in captured.err and captured.out == ""
