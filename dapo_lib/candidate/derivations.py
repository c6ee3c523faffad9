"""A GSM8K solution as a short derivation: `48/2=24; 48+24=72 #### 72`.

Only the ``<<lhs=rhs>>`` annotations are read, and rebuilt in one canonical form: exact
numbers, no needless brackets, no steps that compute nothing. Left out: prose, units,
and problems whose annotations do not lead exactly to the answer (:class:`LeftOut` says
why).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from dapo_lib.data.arithmetic import tokenize
from dapo_lib.data.gsm8k import Problem
from dapo_lib.errors import BadInput, DapoError

Number = int | Fraction  # exact; an int where it is one, for speed
Program = tuple[Number | str, ...]  # postfix: numbers, and the four operators
MAX_PLACES = 4  # decimals of a number that a derivation may show
MAX_VALUE = 10**9
_RANK = {"+": 1, "-": 1, "*": 2, "/": 2}
_TOKEN = re.compile(r"\d+|\S")


class LeftOut(DapoError):
    """A problem that the setting cannot use; the message is a reason to be counted."""


@dataclass(frozen=True, slots=True)
class Step:
    """One equation. `result` is what is written, which an edit may have made wrong.

    `links[i]` is the earlier step whose result the number at `program[i]` is, else -1.
    """

    program: Program
    links: tuple[int, ...]
    result: Number

    @property
    def numbers(self) -> list[Number]:
        """Operands from left to right."""
        return [item for item in self.program if not isinstance(item, str)]

    @property
    def operators(self) -> list[str]:
        """Operators in order of evaluation."""
        return [item for item in self.program if isinstance(item, str)]


Derivation = tuple[Step, ...]


def derive(problem: Problem) -> Derivation:
    """The canonical derivation of a problem. Raises :class:`LeftOut` with its reason.

    >>> from dapo_lib.data.gsm8k import problem
    >>> p = problem("48, then half?", "<<48/2=24>>24, <<48+24=72>>72\\n#### 72")
    >>> text(derive(p)), derive(p)[1].links
    ('48/2=24; 48+24=72 #### 72', (-1, 0, -1))
    """
    if not problem.annotations:
        raise LeftOut("no annotation")
    steps: list[Step] = []
    for lhs, rhs in problem.annotations:
        program = postfix(lhs)
        if len(program) == 1:  # `24=24` computes nothing
            continue
        result = parse_number(rhs)
        if value(program) != result:
            raise LeftOut("an equation does not hold exactly")
        if not writable(result):
            raise LeftOut("a result is not positive or has too many digits")
        steps.append(Step(program, _links(program, steps), result))
    if not steps or steps[-1].result != problem.answer:
        raise LeftOut("the last equation is not the answer")
    return tuple(steps)


def postfix(expression: str) -> Program:
    """An infix expression in postfix order. Raises :class:`LeftOut` (signs, syntax).

    >>> [str(item) for item in postfix("(1+2)*.5")]
    ['1', '2', '+', '1/2', '*']
    """
    try:
        tokens = tokenize(expression)
    except BadInput as fault:
        raise LeftOut("an annotation is malformed") from fault
    output: list[Number | str] = []
    pending: list[str] = []
    operand_next = True
    for token in tokens:
        opens = token not in ("+", "-", "*", "/", ")")
        if opens is not operand_next:
            raise LeftOut("an annotation has a sign or a missing operator")
        if token == "(":
            pending.append(token)
        elif token == ")":
            while pending and pending[-1] != "(":
                output.append(pending.pop())
            if not pending:
                raise LeftOut("an annotation is malformed")
            pending.pop()
        elif token in _RANK:
            while pending and _RANK.get(pending[-1], 0) >= _RANK[token]:
                output.append(pending.pop())
            pending.append(token)
            operand_next = True
        else:
            output.append(parse_number(token))
            operand_next = False
    if operand_next or "(" in pending:
        raise LeftOut("an annotation is malformed")
    return (*output, *reversed(pending))


def value(program: Program) -> Number | None:
    """What a program computes; None where it divides by zero.

    >>> value(postfix("48/2"))
    24
    """
    stack: list[Number] = []
    for item in program:
        if not isinstance(item, str):
            stack.append(item)
            continue
        right = stack.pop()
        left = stack.pop()
        if item == "+":
            stack.append(left + right)
        elif item == "-":
            stack.append(left - right)
        elif item == "*":
            stack.append(left * right)
        elif right == 0:
            return None
        else:
            stack.append(exact(Fraction(left, right)))
    return exact(stack[0])


def exact(number: Number) -> Number:
    """The same number, as an int where it is one."""
    return number.numerator if number.denominator == 1 else number


def infix(program: Program) -> str:
    """A program as people write it, with no bracket that changes nothing.

    >>> infix(postfix("(2*3)+(4)-(5-1)"))
    '2*3+4-(5-1)'
    """
    stack: list[tuple[str, int]] = []
    for item in program:
        if not isinstance(item, str):
            stack.append((number_text(item), 3))
            continue
        (left, left_rank), (right, right_rank) = stack[-2:]
        rank = _RANK[item]
        left = f"({left})" if left_rank < rank else left
        tight = right_rank < rank or (right_rank == rank and item in "-/")
        stack[-2:] = [
            (f"{left}{item}({right})" if tight else left + item + right, rank)
        ]
    return stack[0][0]


def text(steps: Derivation) -> str:
    """A derivation as one line, its answer after ``####``."""
    body = "; ".join(f"{infix(s.program)}={number_text(s.result)}" for s in steps)
    return f"{body} #### {number_text(steps[-1].result)}"


def tokens(line: str) -> list[str]:
    """Tokens of a derivation: integers, and one for each other symbol.

    The last one, the answer's last integer, plays the part of the EOS.

    >>> tokens("48/2=24 ## 0.5")
    ['48', '/', '2', '=', '24', '#', '#', '0', '.', '5']
    """
    return _TOKEN.findall(line)


def rerun(steps: Derivation, fixed: int = -1) -> Derivation | None:
    """Carry changed results through the later steps; None where one is not writable.

    Step `fixed` keeps the result it states. This is what "propagated" means: after one
    edit the rest of the derivation is consistent with it.
    """
    done: list[Step] = []
    for position, step in enumerate(steps):
        program = tuple(
            done[link].result if link >= 0 else item
            for item, link in zip(step.program, step.links, strict=True)
        )
        result = step.result if position == fixed else value(program)
        if result is None or not writable(result):
            return None
        done.append(Step(program, step.links, result))
    return tuple(done)


@lru_cache(maxsize=1 << 16)
def writable(number: Number) -> bool:
    """Whether a number is positive, below 10^9 and has at most four decimals."""
    return 0 < number < MAX_VALUE and (number * 10**MAX_PLACES).denominator == 1


@lru_cache(maxsize=1 << 16)
def number_text(number: Number) -> str:
    """An integer, or a decimal without a tail of zeros.

    >>> number_text(24), number_text(Fraction(5, 4))
    ('24', '1.25')
    """
    if number.denominator == 1:
        return str(number.numerator)
    whole, rest = divmod(number * 10**MAX_PLACES, 10**MAX_PLACES)
    return f"{whole}.{int(rest):0{MAX_PLACES}d}".rstrip("0")


@lru_cache(maxsize=1 << 16)
def parse_number(text: str) -> Number:
    """The number that a decimal writes. Raises :class:`LeftOut` past four decimals."""
    try:
        number = Fraction(text.strip())
    except (ValueError, ZeroDivisionError) as fault:
        raise LeftOut("a number is not a decimal") from fault
    if (number * 10**MAX_PLACES).denominator != 1:
        raise LeftOut("a number has too many digits")
    return exact(number)


def _links(program: Program, earlier: list[Step]) -> tuple[int, ...]:
    """The latest earlier step with each operand's value; -1 where there is none."""
    latest = {step.result: position for position, step in enumerate(earlier)}
    return tuple(-1 if isinstance(i, str) else latest.get(i, -1) for i in program)
