"""The real solutions: what the file holds, and how bad input is refused."""

import os

import pytest

from dapo_lib.candidate.suites import solutions
from dapo_lib.candidate.suites.real_solutions import L_MAX

needs_data = pytest.mark.skipif(
    not os.environ.get("DAPO_DATA"), reason="DAPO_DATA does not name a data folder"
)


@pytest.mark.data
@needs_data
def test_the_data_set_is_what_its_authors_published():
    world = solutions.load(solutions.data_file())
    rules = solutions.baselines(world, slice(None))
    assert rules["random"] == pytest.approx(0.379, abs=5e-4)
    assert rules["model_175b_verification"] == pytest.approx(0.563, abs=5e-4)
    assert rules["oracle"] == pytest.approx(0.6725, abs=5e-4)
    held_out = slice(solutions.TRAIN + solutions.VALIDATION, None)
    ceiling = solutions.linear_ceiling(world, held_out)
    assert 0.44 < ceiling < rules["oracle"]
    assert int(world.length.max()) <= L_MAX


def test_a_missing_folder_or_file_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("DAPO_DATA", raising=False)
    with pytest.raises(ValueError, match="DAPO_DATA"):
        solutions.data_file()
    with pytest.raises(ValueError, match=r"example_model_solutions\.jsonl is not in"):
        solutions.data_file(tmp_path)


def test_a_bad_line_is_named(tmp_path):
    file = tmp_path / "broken.jsonl"
    file.write_text('{"question": "q"}\n')
    with pytest.raises(ValueError, match=r"broken\.jsonl line 1: expected"):
        solutions.load(file)
