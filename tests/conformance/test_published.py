"""The committed matrix and its pages."""

import re

import pytest

from dapo_lib.conformance.environments import PEERS
from dapo_lib.conformance.rows import ROWS
from dapo_lib.experiments import published
from dapo_lib.labels import LANGS
from dapo_lib.publish.conformance_page import MARKS, parts, row_verdicts


@pytest.fixture(scope="module")
def matrix():
    return published.load("conformance")


def test_it_is_of_today_s_rows_and_pinned_versions(matrix):
    assert {p.name for p in PEERS} == set(matrix["system"])
    for peer in PEERS:
        own = matrix[matrix["system"] == peer.name]
        assert len(own) == sum(len(row.cases) for row in ROWS)
        assert list(own["row"].unique()) == [row.id for row in ROWS]
        if peer.package:
            name, version = peer.package.split("==")
            assert matrix.attrs["systems"][peer.name][name] == version


def test_ours_has_no_wrong_and_no_adapter_broke(matrix):
    ours = matrix[matrix["system"] == "dapo_lib"]
    assert set(ours["verdict"]) == {"right", "convention"}
    assert not set(matrix["value"]) & {"error", "'error'", "'timeout'", "'died'"}


def test_counts_are_those_of_the_table(matrix):
    verdicts = row_verdicts(matrix)
    for system, counts in matrix.attrs["counts"].items():
        found = verdicts[system].value_counts().to_dict()
        assert {k: v for k, v in counts.items() if v} == found


def test_every_wrong_has_its_details(matrix):
    wrong = matrix[matrix["verdict"] == "wrong"]
    assert len(wrong)
    for column in ("input", "value", "right", "report"):
        assert wrong[column].notna().all()


def test_both_languages_say_the_same(matrix):
    pages = {lang: parts(matrix, lang) for lang in LANGS}
    for name in pages["en"]:
        marks = [re.findall("|".join(MARKS.values()), p[name]) for p in pages.values()]
        code = [re.findall(r"`[^`]+`", p[name]) for p in pages.values()]
        assert marks[0] == marks[1] and code[0] == code[1]
        assert re.search("[\u4e00-\u9fff]", pages["zh"][name])
        assert not re.search(
            "[\u4e00-\u9fff]", re.sub(r"`[^`]+`", "", pages["en"][name])
        )
