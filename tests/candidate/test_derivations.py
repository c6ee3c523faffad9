"""Canonical derivations: what is read, what is left out, what an edit carries on."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dapo_lib.candidate import derivations
from dapo_lib.candidate.derivations import LeftOut, derive, infix, postfix, text, tokens
from dapo_lib.data.arithmetic import evaluate
from dapo_lib.data.gsm8k import problem

operands = st.sampled_from(["1", "2", "3.5", "40", ".25"])
expressions = st.recursive(
    operands,
    lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(
        lambda t: f"({t[0]}{t[1]}{t[2]})"
    ),
    max_leaves=6,
)


def derived(*equations: str, answer: str):
    body = " ".join(f"<<{e}>>" for e in equations)
    return derive(problem("A question of 48 and 2?", f"{body}\n#### {answer}"))


def test_canonical_form_drops_brackets_zeros_and_idle_steps() -> None:
    steps = derived("(040.0/2)=20", "20=20", "(20+4)*(2)=48.00", answer="48")
    assert text(steps) == "40/2=20; (20+4)*2=48 #### 48"
    assert steps[1].links == (0, -1, -1, -1, -1)


@given(expressions)
def test_infix_keeps_the_value_of_every_expression(expression: str) -> None:
    try:
        program = postfix(expression)
        exact = evaluate(expression)
    except (LeftOut, ValueError):  # a division by zero
        return
    assert derivations.value(program) == exact
    printed = infix(program)
    assert len(printed) <= len(expression) + 2  # `.25` is written `0.25`
    assert evaluate(printed) == exact


@pytest.mark.parametrize(
    ("equations", "answer", "reason"),
    [
        ([], "4", "no annotation"),
        (["2+2=5"], "5", "does not hold"),
        (["2+2=4"], "5", "not the answer"),
        (["+2+2=4"], "4", "sign"),
        (["2-2=0", "0+4=4"], "4", "not positive"),
        (["4=4"], "4", "not the answer"),
        (["2/(1+(2=4"], "4", "malformed"),
    ],
)
def test_left_out_with_a_reason(equations, answer, reason) -> None:
    with pytest.raises(LeftOut, match=reason):
        derived(*equations, answer=answer)


def test_tokens_are_integers_and_symbols() -> None:
    line = "48/2=24; 48+24=72 #### 72"
    assert len(tokens(line)) == 16
    assert "".join(tokens(line)) == line.replace(" ", "")


def test_a_changed_result_is_carried_to_the_end() -> None:
    steps = derived("48/2=24", "48+24=72", "72*2=144", answer="144")
    wrong = derivations.Step(steps[0].program, steps[0].links, 25)
    carried = derivations.rerun((wrong, *steps[1:]), fixed=0)
    assert text(carried) == "48/2=25; 48+25=73; 73*2=146 #### 146"


def test_numbers_without_a_short_decimal_are_not_writable() -> None:
    assert derivations.writable(Fraction(1, 16))
    assert not derivations.writable(Fraction(1, 3))
    assert not derivations.writable(0)
