"""Every name in the paper map exists: functions, tests, experiments, options, pages."""

from __future__ import annotations

import ast
import pkgutil
import re
from pathlib import Path

import pytest

from dapo_lib.engines.check_config.names import from_table
from dapo_lib.experiments import published
from dapo_lib.experiments.catalogue import EXPERIMENTS
from dapo_lib.publish import paper_map

ROOT = Path(__file__).resolve().parents[2]
ROWS = paper_map.content()["rows"]
DISAGREEMENTS = paper_map.content()["disagreements"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["place"])
def test_what_a_row_names_is_there(row):
    for name in row["code"]:
        assert pkgutil.resolve_name(name) is not None, name
    for name in row["test"]:
        path, _, function = name.partition("::")
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
        assert not function or function in defined, name
    for name in row.get("experiment", []):
        assert name in EXPERIMENTS or name in published.names(), name
    for engine in ("verl", "trl"):
        for option in row.get(engine, []):
            assert option in from_table(engine).defaults, option
    assert (ROOT / f"notebooks/{row['chapter']}.ipynb").exists()
    assert set(row["what"]) == {"en", "zh"}


def test_all_equations_figures_and_mechanisms_of_the_paper_have_a_row():
    places = " ".join(row["place"] for row in ROWS)
    for wanted in ("eq 5", "eq 7", "eq 8, 10", "eq 9", "eq 11", "eq 12", "eq 13"):
        assert wanted in places
    for figure in "1 2 3a 3b 4 5 6 7".split():
        assert f"fig {figure}" in places
    assert "alg 1" in places and "table 1" in places


@pytest.mark.parametrize("row", DISAGREEMENTS, ids=lambda row: row["what"]["en"])
def test_a_disagreement_has_all_sides_in_both_languages(row):
    for side in ("what", *paper_map.SIDES):
        assert set(row[side]) == {"en", "zh"} and all(row[side].values())
        maths = [
            re.findall(r"\$[^$]+\$|`[^`]+`", row[side][lang]) for lang in row[side]
        ]
        assert sorted(maths[0]) == sorted(maths[1]), row[side]
    for name in row["code_names"]:
        assert pkgutil.resolve_name(name) is not None, name


def test_numbers_of_the_disagreements_are_what_the_library_says():
    """The statements about our side that a call can settle."""
    import torch

    from dapo_lib.advantage import group_advantages
    from dapo_lib.overlong import soft_overlong

    paper, wrong = {"l_max": 20480, "l_cache": 4096}, {"l_max": 16384, "l_cache": 4096}
    length = torch.tensor([16384, 16385, 12288, 12289, 20480])
    assert soft_overlong(length[:2], **paper).tolist()[0] == 0
    assert soft_overlong(length[1:2], **paper).item() < 0
    assert soft_overlong(length[2:4], **wrong).tolist()[0] == 0
    assert soft_overlong(length[3:4], **wrong).item() < 0
    assert soft_overlong(torch.tensor([99999]), **paper).item() == -1
    reward, ids = torch.tensor([1.0] + [-1.0] * 15), torch.zeros(16, dtype=torch.int64)
    one, zero = (group_advantages(reward, ids, ddof=d, eps=0) for d in (1, 0))
    torch.testing.assert_close(zero / one, torch.full_like(one, (16 / 15) ** 0.5))
    assert group_advantages(torch.ones(4), ids[:4]).abs().max() == 0


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_tables_are_whole(lang):
    for text in (paper_map.disagreements(lang), paper_map.table_1(lang)):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines()}
        assert len(widths) == 1
