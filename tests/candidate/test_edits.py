"""Each edit does what its name says, once, and stays consistent afterwards."""

from random import Random

import pytest

from dapo_lib.candidate import question
from dapo_lib.candidate.derivations import derive, text, value
from dapo_lib.candidate.edits import EDITS
from dapo_lib.data.gsm8k import problem

ASKED = "Ann has 40 pens, half as many caps, and 3 bags. How many in each bag?"
GOLD = derive(problem(ASKED, "<<40/2=20>> <<40+20=60>> <<60/3=20>>\n#### 20"))
SEEN = question.read(ASKED)


def variants(kind: str) -> list:
    return list(EDITS[kind](GOLD, SEEN, Random(0)))


def false_equations(steps) -> int:
    return sum(value(s.program) != s.result for s in steps)


@pytest.mark.parametrize("kind", sorted(EDITS))
def test_same_seed_same_variants_and_never_gold_itself(kind: str) -> None:
    lines = [text(v) for v in variants(kind)]
    assert lines and lines == [text(v) for v in variants(kind)]
    assert text(GOLD) not in lines


@pytest.mark.parametrize("kind", sorted(EDITS))
def test_only_a_slip_states_a_false_equation(kind: str) -> None:
    wrong = {false_equations(v) for v in variants(kind)}
    assert wrong == ({1} if kind == "slip" else {0})


@pytest.mark.parametrize("kind", ["slip", "ungrounded", "misread", "op", "swap"])
def test_the_steps_before_the_edit_are_untouched(kind: str) -> None:
    for steps in variants(kind):
        assert len(steps) == len(GOLD)
        pairs = zip(steps, GOLD, strict=True)
        first = next(i for i, (a, b) in enumerate(pairs) if a != b)
        for at in range(first + 1, len(GOLD)):  # later ones only through results
            for link, item in zip(steps[at].links, steps[at].program, strict=True):
                if link >= 0:
                    assert item == steps[link].result


def changed_numbers(steps) -> list:
    """Operands from outside that are not what gold has in their place."""
    return [
        item
        for step, right in zip(steps, GOLD, strict=True)
        for item, was, link in zip(step.program, right.program, step.links, strict=True)
        if link < 0 and item != was
    ]


def test_ungrounded_numbers_are_new_and_misread_ones_are_the_questions() -> None:
    known = {*SEEN.stated, *SEEN.implied, *(s.result for s in GOLD)}
    for steps in variants("ungrounded"):
        [number] = changed_numbers(steps)
        assert number not in known
    for steps in variants("misread"):
        [number] = changed_numbers(steps)
        assert number in SEEN.stated


def test_early_is_one_step_shorter_and_extra_one_longer() -> None:
    assert variants("early") == [GOLD[:-1]]
    assert all(len(v) == 4 and v[:3] == GOLD for v in variants("extra"))
    assert not list(EDITS["early"](GOLD[:1], SEEN, Random(0)))


def test_swap_turns_whole_operands() -> None:
    steps = derive(problem("9, 3 and 2?", "<<9-(3-2)=8>>\n#### 8"))
    turned = [text(v) for v in EDITS["swap"](steps, SEEN, Random(1))]
    assert turned == ["9-(2-3)=10 #### 10"]  # 3-2-9 is negative: not offered
