"""Eight ways to get a derivation wrong: one deterministic edit, carried to the end.

Every function yields variants of one kind in an order that `order` (a generator seeded
by the question's hash) decides; the caller takes the first that serves. Left out: edits
that leave the answer right, and two edits at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from random import Random

from dapo_lib.candidate.derivations import (
    Derivation,
    Number,
    Program,
    Step,
    exact,
    number_text,
    parse_number,
    rerun,
    value,
    writable,
)
from dapo_lib.candidate.question import Question

Variants = Iterator[Derivation]


def slip(steps: Derivation, question: Question, order: Random) -> Variants:
    """A wrong digit in one step's result: the only edit whose equation is false."""
    for at in _shuffled(range(len(steps)), order):
        for wrong in _misprints(steps[at].result, order):
            yield from _carried(steps, at, replace(steps[at], result=wrong), fixed=at)


def ungrounded(steps: Derivation, question: Question, order: Random) -> Variants:
    """A number mis-copied into one that the question does not have."""
    known = {*question.stated, *question.implied, *(s.result for s in steps)}
    for at, slot in _outside(steps, order):
        for wrong in _misprints(steps[at].program[slot], order):
            if wrong not in known:
                yield from _carried(steps, at, _put(steps[at], slot, wrong))


def misread(steps: Derivation, question: Question, order: Random) -> Variants:
    """Another number of the question in the place of the right one."""
    for at, slot in _outside(steps, order):
        for wrong in _shuffled(dict.fromkeys(question.stated), order):
            if wrong != steps[at].program[slot] and wrong > 0:
                yield from _carried(steps, at, _put(steps[at], slot, wrong))


def op(steps: Derivation, question: Question, order: Random) -> Variants:
    """A wrong operation."""
    for at, slot in _operators(steps, "+-*/", order):
        for wrong in _shuffled("+-*/", order):
            if wrong != steps[at].program[slot]:
                yield from _carried(steps, at, _put(steps[at], slot, wrong))


def early(steps: Derivation, question: Question, order: Random) -> Variants:
    """Stops one step before the end; not offered for a single step."""
    if len(steps) > 1:
        yield steps[:-1]


def extra(steps: Derivation, question: Question, order: Random) -> Variants:
    """One step too many, with a number of the question or an earlier result."""
    last = len(steps) - 1
    others = [(number, -1) for number in dict.fromkeys(question.stated) if number > 0]
    others += [(step.result, at) for at, step in enumerate(steps[:-1])]
    for other, link in _shuffled(others, order):
        for operator in _shuffled("+-*/", order):
            program = (steps[-1].result, other, operator)
            result = value(program)
            if result is not None and writable(result):
                yield (*steps, Step(program, (last, link, -1), result))


def swap(steps: Derivation, question: Question, order: Random) -> Variants:
    """The operands of a subtraction or a division exchanged."""
    for at, slot in _operators(steps, "-/", order):
        step = steps[at]
        middle = _start_of(step.program, slot - 1)
        first = _start_of(step.program, middle - 1)
        turned = [
            (*row[:first], *row[middle:slot], *row[first:middle], *row[slot:])
            for row in (step.program, step.links)
        ]
        yield from _carried(
            steps, at, replace(step, program=turned[0], links=turned[1])
        )


def scale(steps: Derivation, question: Question, order: Random) -> Variants:
    """A number ten or a hundred times too large or too small."""
    factors = [10, 100, Fraction(1, 10), Fraction(1, 100)]
    for at, slot in _outside(steps, order):
        for factor in _shuffled(factors, order):
            wrong = exact(steps[at].program[slot] * factor)
            if writable(wrong):
                yield from _carried(steps, at, _put(steps[at], slot, wrong))


EDITS: dict[str, Callable[[Derivation, Question, Random], Variants]] = {
    edit.__name__: edit
    for edit in (slip, ungrounded, misread, op, early, extra, swap, scale)
}


def _carried(steps: Derivation, at: int, edited: Step, fixed: int = -1) -> Variants:
    done = rerun((*steps[:at], edited, *steps[at + 1 :]), fixed)
    if done is not None:
        yield done


def _shuffled(items, order: Random) -> list:
    return order.sample(items := list(items), len(items))


def _put(step: Step, slot: int, item: Number | str) -> Step:
    program = (*step.program[:slot], item, *step.program[slot + 1 :])
    return replace(step, program=program)


def _outside(steps: Derivation, order: Random) -> list[tuple[int, int]]:
    """(step, slot) of the operands that are no earlier step's result."""
    found = [
        (at, slot)
        for at, step in enumerate(steps)
        for slot, item in enumerate(step.program)
        if not isinstance(item, str) and step.links[slot] < 0
    ]
    return _shuffled(found, order)


def _operators(steps: Derivation, which: str, order: Random) -> list[tuple[int, int]]:
    found = [
        (at, slot)
        for at, step in enumerate(steps)
        for slot, item in enumerate(step.program)
        if isinstance(item, str) and item in which
    ]
    return _shuffled(found, order)


def _start_of(program: Program, end: int) -> int:
    """Where the postfix expression that ends at `end` begins."""
    missing = 1
    while missing:
        missing += 1 if isinstance(program[end], str) else -1
        end -= 1
    return end + 1


def _misprints(number: Number, order: Random) -> Iterator[Number]:
    """Numbers that differ in one digit, or have two neighbouring digits exchanged."""
    digits = number_text(number)
    places = [at for at, digit in enumerate(digits) if digit != "."]
    found = {
        digits[:at] + new + digits[at + 1 :] for at in places for new in "0123456789"
    }
    for at in places[1:]:
        before, digit = digits[at - 1], digits[at]
        if before != ".":
            found.add(digits[: at - 1] + digit + before + digits[at + 1 :])
    # sorted: the order of a set of strings differs between processes
    for wrong in _shuffled(sorted(found - {digits}), order):
        if (wrong[0] != "0" or wrong[:2] == "0.") and writable(parse_number(wrong)):
            yield parse_number(wrong)
