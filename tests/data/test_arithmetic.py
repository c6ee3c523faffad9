"""The annotation evaluator against Python's own grammar, and its refusals."""

from __future__ import annotations

import ast
import operator
import re
import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dapo_lib.data.arithmetic import decimal_text, evaluate, holds, parse_annotations
from dapo_lib.errors import BadInput

_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def by_python(expression: str) -> Fraction:
    """The oracle: Python's parser decides precedence, Fractions do the sums."""

    def walk(node: ast.expr) -> Fraction:
        if isinstance(node, ast.Constant):
            return Fraction(str(node.value))
        if isinstance(node, ast.UnaryOp):
            value = walk(node.operand)
            return -value if isinstance(node.op, ast.USub) else value
        return _OPERATORS[type(node.op)](walk(node.left), walk(node.right))

    return walk(ast.parse(expression, mode="eval").body)


numbers = st.integers(0, 999).map(str) | st.sampled_from(["0.5", "1.25", "0.2"])
expressions = st.recursive(
    numbers,
    lambda inner: (
        st.tuples(inner, st.sampled_from("+-*/"), inner).map("".join)
        | inner.map("({})".format)
        | inner.map("-{}".format)
    ),
    max_leaves=12,
)


@given(expressions)
def test_agrees_with_pythons_grammar(expression):
    try:
        wanted = by_python(expression)
    except ZeroDivisionError:
        with pytest.raises(BadInput, match="divisor"):
            evaluate(expression)
    else:
        assert evaluate(expression) == wanted


BROKEN = """
1+ | *2 | (1 | 1) | () | 2(3) | 1 2 | 2**3 | a+1 | 1,000 | １+１ | 1/0 | 1/(2-2)
1..2 | ... | 1=1 | 6//3
"""


@pytest.mark.parametrize(
    "expression", ["", "(" * 400, "9" * 1001, *re.split(r"[|\n]", BROKEN)]
)
def test_refuses_with_the_expression_named(expression):
    with pytest.raises(BadInput, match="expression: got"):
        evaluate(expression)


def test_depth_has_no_limit_and_time_is_bounded():
    began = time.process_time()
    assert evaluate("(" * 499 + "7" + ")" * 499) == 7
    assert evaluate("9*" * 499 + "9") == 9**500
    assert time.process_time() - began < 0.5


def test_annotations_in_order():
    solution = "a <<1+1=2>>2, b << 2*3 = 6 >>6\n#### 6"
    assert parse_annotations(solution) == [("1+1", "2"), ("2*3", "6")]
    assert parse_annotations("no numbers\n#### 6") == []


@pytest.mark.parametrize("text", ["<<1+1>>", "<<1=1=1>>", "<<=2>>", "<<2=>>"])
def test_annotation_needs_one_equals_sign(text):
    with pytest.raises(BadInput, match="annotation"):
        parse_annotations(text)


def test_holds_is_exact():
    assert holds("0.1+0.2", "0.3")  # false in binary floats
    assert not holds("1/3", "0.3333")


@given(st.integers(-(10**6), 10**6), st.integers(0, 4))
def test_decimal_text_round_trips(digits, places):
    value = Fraction(digits, 10**places)
    text = decimal_text(value)
    assert Fraction(text) == value
    assert "." not in text or not text.endswith("0")


def test_decimal_text_refuses_thirds():
    with pytest.raises(BadInput, match="finite decimal"):
        decimal_text(Fraction(1, 3))
