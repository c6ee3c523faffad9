"""Six candidates: distinct, one right, fixed by the question and by nothing else."""

import subprocess
import sys

import pytest
import torch

from dapo_lib.candidate.derivations import tokens
from dapo_lib.candidate.table import MIXES, Scaling, build
from dapo_lib.data.embedded import load_embedded
from dapo_lib.errors import BadInput


@pytest.fixture(scope="module", params=sorted(MIXES))
def table(request):
    return build(load_embedded().train[:150], request.param)


def answer(line: str) -> str:
    return line.split(" #### ")[1]


def test_answers_differ_and_gold_is_the_only_right_one(table) -> None:
    for lines, kinds, gold in zip(
        table.texts, table.kinds, table.gold.tolist(), strict=True
    ):
        assert len({answer(line) for line in lines}) == 6
        assert kinds.count("gold") == 1 and kinds[gold] == "gold"


def test_the_mix_is_met_but_for_what_is_counted_as_replaced(table) -> None:
    wanted = sorted((*MIXES[table.mix], "gold"))
    other = sum(sorted(kinds) != wanted for kinds in table.kinds)
    assert other <= sum(table.replaced.values())
    assert len(table) + sum(table.left_out.values()) == 150


def test_length_counts_the_tokens_of_the_text(table) -> None:
    assert table.length.shape == (len(table), 6)
    assert table.length[3, 2] == len(tokens(table.texts[3][2]))


def test_slots_hold_gold_about_equally_often(table) -> None:
    share = torch.bincount(table.gold, minlength=6) / len(table)
    assert ((share - 1 / 6).abs() < 4 * (5 / 36 / len(table)) ** 0.5).all()


def test_another_process_builds_the_same_candidates(table) -> None:
    """Neither the hash of strings nor any global generator may matter."""
    code = (
        "from dapo_lib.data.embedded import load_embedded as e\n"
        "from dapo_lib.candidate.table import build\n"
        f"print(build(e().train[:20], {table.mix!r}).texts)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "1"},
    )
    assert done.stdout.strip() == str(
        build(load_embedded().train[:20], table.mix).texts
    )


def test_scaling_is_measured_on_one_table_and_used_on_another(table) -> None:
    scaling = Scaling.of(table.features)
    flat = scaling(table.features).flatten(0, 1)
    assert flat.mean(0).abs().max() < 1e-9
    spread = flat.std(0, correction=0)
    assert (((spread - 1).abs() < 1e-9) | (spread == 0)).all()


def test_bad_input_names_the_argument() -> None:
    problems = load_embedded().train[:3]
    with pytest.raises(BadInput, match="mix: got 'easy'"):
        build(problems, "easy")
    with pytest.raises(BadInput, match="problems"):
        build([], "verify")


@pytest.mark.data
def test_usable_share_of_gsm8k(gsm8k) -> None:
    table = build(gsm8k.test)
    assert len(table) + sum(table.left_out.values()) == 1319
    assert 1150 <= len(table) <= 1250
    assert 20 <= table.length.median() <= 30 and table.length.max() <= 110
