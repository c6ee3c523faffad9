"""Exact arithmetic for the `<<48/2=24>>` annotations of GSM8K: Fractions, no eval().

Left out: powers, functions, units, thousands separators; no annotation has them.
"""

from __future__ import annotations

import re
from fractions import Fraction

from dapo_lib.errors import BadInput

_TOKEN = re.compile(r"\s*(?:([0-9]+\.?[0-9]*|\.[0-9]+)|([-+*/()]))")
_ANNOTATION = re.compile(r"<<([^<>]*)>>")
_RANK = {"+": 1, "-": 1, "*": 2, "/": 2, "neg": 3}
MAX_CHARACTERS = 1000  # bounds the size of the numbers, and so the time


def tokenize(expression: str) -> list[str]:
    """Numbers, operators and brackets of an expression, in order.

    Raises ``BadInput`` on any other character and past ``MAX_CHARACTERS``.

    >>> tokenize("2*(3 - .5)")
    ['2', '*', '(', '3', '-', '.5', ')']
    """
    if len(expression) > MAX_CHARACTERS:
        raise BadInput(
            f"expression: got {len(expression)} characters, "
            f"expected at most {MAX_CHARACTERS}"
        )
    tokens, at, text = [], 0, expression.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _bad(expression, f"numbers and + - * / ( ) at character {at + 1}")
        tokens.append(match.group(1) or match.group(2))
        at = match.end()
    return tokens


def evaluate(expression: str) -> Fraction:
    """The exact value of an expression of decimals, + - * / and brackets.

    Two stacks instead of recursion, so that depth has no limit but the length. Raises
    ``BadInput`` that names the expression: not well formed, or a division by zero.

    >>> evaluate("48/2"), evaluate("-(1.5 + 2) * 2")
    (Fraction(24, 1), Fraction(-7, 1))
    """
    values: list[Fraction] = []
    pending: list[str] = []
    operand_next = True
    for token in tokenize(expression):
        if operand_next and token in "+-":
            pending.extend(["neg"] if token == "-" else [])
        elif token == "(":
            _require(operand_next, expression, "an operator before (")
            pending.append(token)
        elif token == ")":
            _require(not operand_next, expression, "a number before )")
            while pending and pending[-1] != "(":
                _apply(pending.pop(), values, expression)
            _require(bool(pending), expression, "a ( for every )")
            pending.pop()
        elif token in "+-*/":
            _require(not operand_next, expression, f"a number before {token}")
            while pending and _RANK.get(pending[-1], 0) >= _RANK[token]:
                _apply(pending.pop(), values, expression)
            pending.append(token)
            operand_next = True
        else:
            _require(operand_next, expression, f"an operator before {token}")
            values.append(Fraction(token))
            operand_next = False
    _require(not operand_next, expression, "a number at the end")
    while pending:
        operator = pending.pop()
        _require(operator != "(", expression, "a ) for every (")
        _apply(operator, values, expression)
    return values.pop()


def parse_annotations(solution: str) -> list[tuple[str, str]]:
    """The (lhs, rhs) texts of every ``<<lhs=rhs>>`` of a GSM8K solution, in order.

    Nothing is evaluated. Raises ``BadInput`` on one without exactly one ``=``.

    >>> parse_annotations("48/2 = <<48/2=24>>24 clips in May.")
    [('48/2', '24')]
    """
    pairs = []
    for text in _ANNOTATION.findall(solution):
        lhs, *rest = text.split("=")
        if len(rest) != 1 or not lhs.strip() or not rest[0].strip():
            raise BadInput(f"annotation: got <<{text}>>, expected <<expression=value>>")
        pairs.append((lhs.strip(), rest[0].strip()))
    return pairs


def holds(lhs: str, rhs: str) -> bool:
    """Whether an equation is exactly true. Raises ``BadInput`` as :func:`evaluate`.

    >>> holds("48/2", "24"), holds("1/3", "0.33")
    (True, False)
    """
    return evaluate(lhs) == evaluate(rhs)


def decimal_text(value: Fraction | int) -> str:
    """A number as GSM8K writes it: an integer, or a finite decimal without a tail of 0.

    Raises ``BadInput`` where no finite decimal exists.

    >>> decimal_text(Fraction(24)), decimal_text(Fraction(-5, 4)), decimal_text(1200)
    ('24', '-1.25', '1200')
    """
    value = Fraction(value)
    places, rest = 0, value.denominator
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest, power = rest // prime, power + 1
        places = max(places, power)
    if rest != 1:
        raise BadInput(f"number: got {value}, expected one with a finite decimal")
    sign = "-" if value < 0 else ""
    digits = str(abs(value.numerator) * 10**places // value.denominator)
    if not places:
        return sign + digits
    digits = digits.rjust(places + 1, "0")
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def _apply(operator: str, values: list[Fraction], expression: str) -> None:
    right = values.pop()
    if operator == "neg":
        values.append(-right)
        return
    left = values.pop()
    if operator == "+":
        values.append(left + right)
    elif operator == "-":
        values.append(left - right)
    elif operator == "*":
        values.append(left * right)
    else:
        _require(right != 0, expression, "a divisor other than 0")
        values.append(left / right)


def _require(condition: bool, expression: str, wanted: str) -> None:
    if not condition:
        raise _bad(expression, wanted)


def _bad(expression: str, wanted: str) -> BadInput:
    shown = expression if len(expression) <= 60 else expression[:57] + "..."
    return BadInput(f"expression: got {shown!r}, expected {wanted}")
