"""Asking an adapter: whatever it does, its row is marked and the others go on."""

import json

import pytest

from dapo_lib.cli import main
from dapo_lib.conformance.ask import Adapter
from dapo_lib.conformance.matrix import frame, payload, shown, text
from dapo_lib.conformance.rows import RAISES, Case, Row
from dapo_lib.conformance.run import run
from dapo_lib.errors import BadInput

BAD = """
import os, sys, time

def versions():
    print("noise on standard output")
    return {"bad": "1"}

def pass_at_k(*, n, c, k):
    if n == 1:
        raise ValueError("refused")
    if n == 2:
        raise KeyError("a bug")
    if n == 3:
        time.sleep(60)
    if n == 4:
        os._exit(3)
    if n == 5:
        return object()
    if n == 6:
        raise NotImplementedError("not today")
    print("more noise")
    return 0.5

def refill(**given):
    return {"rounds": 3}
"""


def row(name, right, n=9, operation="pass_at_k"):
    return Row(name, "a report", (Case(operation, {"n": n, "c": 1, "k": 2}, right),))


@pytest.fixture
def bad(tmp_path):
    path = tmp_path / "trl.py"  # a file may be named as a package
    path.write_text(BAD)
    return str(path)


def test_raises_hangs_dies_and_the_others_go_on(bad):
    rows = [
        row("right", 0.5),
        row("refused", RAISES, 1),
        row("refused_wrongly", 0.5, 1),
        row("bug", RAISES, 2),
        row("hang", 0.5, 3),
        row("after_hang", 0.5),
        row("died", 0.5, 4),
        row("after_death", 0.5),
        row("not_data", 0.5, 5),
        row("missing", 0.5, 6),
        row("no_function", 0.5, operation="kl"),
        row("unsaid", {"rounds": 3, "drawn": 1}, operation="refill"),
        row("said", {"rounds": 3}, operation="refill"),
        row("wrong", 0.75),
    ]
    report = run("bad", Adapter(bad, timeout=5.0), rows)
    found = {r.row.id: r.verdict for r in report.results}
    right = ("right", "refused", "after_hang", "after_death", "said")
    missing = ("missing", "no_function", "unsaid")
    assert report.versions == {"bad": "1"}
    for name, verdict in found.items():
        wanted = "right" if name in right else "wrong"
        assert verdict == ("not_offered" if name in missing else wanted), name
    values = {r.row.id: r.answers[0] for r in report.results}
    assert values["hang"].value == "timeout" and values["died"].value == "died"
    assert "KeyError" in values["bug"].note and "plain data" in values["not_data"].note
    broken = [line.split()[0] for line in report.broken()]
    assert broken == ["bug", "hang", "died", "not_data"]
    assert report.counts() == {
        "right": 5,
        "convention": 0,
        "wrong": 6,
        "not_offered": 3,
    }


def test_no_matrix_is_written_from_a_broken_adapter(bad, tmp_path, monkeypatch, capsys):
    from dapo_lib.conformance import environments, rows

    peers = (environments.Peer("bad", bad),)
    monkeypatch.setattr(environments, "PEERS", peers)
    monkeypatch.setattr(rows, "ROWS", (row("bug", 0.5, 2),))
    assert main(["conform", "--all", "--out", str(tmp_path / "out")]) == 1
    assert "bad bug error: KeyError" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(rows, "ROWS", (row("right", 0.5),))
    assert main(["conform", "--all", "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "conformance.csv").exists()


def test_every_wrong_shows_input_value_right_value_and_report(bad):
    report = run("bad", Adapter(bad), [row("wrong", 0.75)])
    printed = text(report)
    for part in ("pass_at_k(n=9, c=1, k=2)", "got 0.5", "right 0.75", "a report"):
        assert part in printed
    (line,) = frame([report]).itertuples()
    assert (line.value, line.right, line.report) == ("0.5", "0.75", "a report")
    assert payload(report)["counts"]["wrong"] == 1


def test_ours_has_no_wrong_and_offers_every_row(capsys, tmp_path):
    assert main(["conform", "--json", "--out", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["counts"]["wrong"] == 0 and found["counts"]["not_offered"] == 0
    bad_words = ("error", "timeout", "died")
    cases = [c for r in found["rows"].values() for c in r["cases"]]
    assert not any(c["value"] in bad_words for c in cases)
    from dapo_lib.experiments import published

    table = published.load("conformance", tmp_path)
    assert len(table) == len(cases) and table.attrs["systems"]["dapo_lib"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no_such_module"], "no_such_module"),
        (["json:nothing"], "nothing"),
        (["missing.py"], "missing.py"),
        (["json", "--python", "/no/python"], "/no/python"),
        (["json", "--all"], "json"),
        (["--timeout", "0"], "0"),
        (["--timeout", "nan"], "nan"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(arguments, said, capsys):
    assert main(["conform", *arguments]) == 2
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1 and said in err


def test_a_module_without_any_function_offers_nothing(capsys):
    assert main(["conform", "json"]) == 0
    assert "0 wrong" in capsys.readouterr().out


def test_an_attribute_or_a_class_may_be_the_adapter(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "class Mine:\n    def pass_at_k(self, n, c, k):\n        return .5\n"
    )
    with Adapter(f"{path}:Mine") as adapter:
        assert adapter.ask("pass_at_k", {"n": 1, "c": 1, "k": 1}).value == 0.5
    with pytest.raises(BadInput, match="Other"), Adapter(f"{path}:Other"):
        pass


def test_shown_is_short():
    assert shown([[0.5] * 100, [0.3] * 900]) == "[[0.5]*100, [0.3]*900]"
    assert shown("x" * 200).endswith("(200 characters)'")
