"""What a candidate looks like: 51 numbers from the question and that candidate alone.

Left out on purpose: anything that compares candidates. Gold is the hub from which all
edits start, so "shares most equations with the others" would leak it (ceiling.py says
how much). Nor is there a count of steps: where only `extra` changes it, "shorter is
right" would be the whole lesson. Most lie in [-1, 1]; table.py standardises them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from math import log10

from dapo_lib.candidate.derivations import Derivation, Number, value
from dapo_lib.candidate.question import Question

# words of the last sentence, and the operation a last step then tends to have
GOALS: dict[str, tuple[frozenset[str], str]] = {
    "total": (frozenset("total altogether combined together sum all".split()), "+"),
    "left": (frozenset("left remain remaining remains still".split()), "-"),
    "more": (
        frozenset("more difference less fewer longer older additional need".split()),
        "-",
    ),
    "profit": (frozenset("profit change save saved".split()), "-"),
    "each": (frozenset("each per average every".split()), "/"),
}
# words anywhere, and an operation with (if given) an operand that they tend to need
CUES: dict[str, tuple[frozenset[str], tuple[tuple[str, str], ...]]] = {
    "half": (frozenset({"half"}), (("/", "2"), ("*", "1/2"))),
    "twice": (frozenset("twice double doubled doubles".split()), (("*", "2"),)),
    "week": (frozenset("week weeks daily".split()), (("*", "7"), ("/", "7"))),
    "share": (frozenset("split equally divided shared evenly".split()), (("/", ""),)),
    "rate": (frozenset("each per every times".split()), (("*", ""),)),
    "lose": (frozenset("left lost gave ate spent sold used".split()), (("-", ""),)),
    "gain": (frozenset("more total altogether and".split()), (("+", ""),)),
    "fewer": (frozenset("less fewer discount off change".split()), (("-", ""),)),
}
FEATURES: tuple[str, ...] = (
    *("equations_true", "false_decimal"),
    *("ungrounded", "ungrounded_many", "ungrounded_large", "implied"),
    *("coverage", "all_covered", "overused", "overused_any"),
    *("last_new_number", "last_overuses", "in_order"),
    *("dangling", "chain", "result_reused", "last_reuses_result"),
    *("last_only_results", "last_uses_previous"),
    *("misfit", "fits"),
    *("plus_share", "minus_share", "times_share", "over_share"),
    *("last_plus", "last_minus", "last_times", "last_over", "same_operands"),
    *("answer_integer", "results_integer", "answer_stated", "answer_repeats"),
    *("answer_size", "answer_outgrows", "answer_round", "answer_many_digits"),
    *(f"goal_{name}" for name in GOALS),
    *(f"cue_{name}" for name in CUES),
)


@dataclass(slots=True)
class _View:
    """One candidate beside its question, read once."""

    question: Question
    steps: Derivation
    outside: list[list[Number]]  # per step, operands that are no earlier result
    inside: list[list[int]]  # per step, earlier steps whose results it uses
    operators: list[str]
    used: Counter[Number]


def features(question: Question, steps: Derivation) -> list[float]:
    """The features of one candidate, in the order of :data:`FEATURES`.

    Shape: a list of len(FEATURES) floats, no unit.
    """
    outside = [
        [i for i, k in zip(s.program, s.links, strict=True) if k < 0 and i not in _OPS]
        for s in steps
    ]
    inside = [[k for k in s.links if k >= 0] for s in steps]
    operators = [i for s in steps for i in s.program if i in _OPS]
    used = Counter(n for numbers in outside for n in numbers)
    view = _View(question, steps, outside, inside, operators, used)
    return [
        float(x)
        for part in (_truth, _grounding, _coverage, _flow, _shape, _answer, _words)
        for x in part(view)
    ]


_OPS = frozenset("+-*/")


def _truth(view: _View) -> list[float]:
    """Whether every equation holds, and none states a result that is not its own."""
    false = [s for s in view.steps if value(s.program) != s.result]
    return [not false, any(s.result.denominator != 1 for s in false)]


def _grounding(view: _View) -> list[float]:
    """Whether numbers come from the question; results are the solver's own."""
    stated, implied = set(view.question.stated), view.question.implied
    strange = [n for n in view.used if n not in stated and n not in implied]
    return [
        bool(strange),
        len(strange) > 1,
        any(number > 12 and number != 100 for number in strange),
        any(n in implied and n not in stated for n in view.used),
    ]


def _coverage(view: _View) -> list[float]:
    """Which of the question's numbers are used, how often, and in which order."""
    stated = Counter(view.question.stated)
    missing = [number for number in stated if number not in view.used]
    over = [n for n in view.used if n in stated and view.used[n] > stated[n]]
    last = view.outside[-1]
    before = Counter(n for numbers in view.outside[:-1] for n in numbers)
    order = [view.question.stated.index(n) for n in view.used if n in stated]
    rising = sum(a < b for a, b in pairwise(order))
    return [
        1 - len(missing) / max(len(stated), 1),
        not missing,
        min(len(over), 4) / 4,
        bool(over),
        any(n in stated and not before[n] for n in last),
        any(n in stated and before[n] >= stated[n] for n in last),
        rising / max(len(order) - 1, 1),
    ]


def _flow(view: _View) -> list[float]:
    """How results are handed on from step to step."""
    n = len(view.steps)
    uses = Counter(k for links in view.inside for k in links)
    before = Counter(k for links in view.inside[:-1] for k in links)
    dangling = sum(not uses[k] for k in range(n - 1))
    last = view.inside[-1]
    return [
        dangling > 0,
        all(k - 1 in view.inside[k] for k in range(1, n)),
        any(count > 1 for count in uses.values()),
        any(before[k] for k in last),
        bool(last) and not view.outside[-1],
        n - 2 in last,
    ]


def _shape(view: _View) -> list[float]:
    """Its operations, and whether they are as many as the question's numbers need."""
    n = len(view.operators)
    misfit = abs(n + 1 - len(set(view.question.stated)))
    share = [view.operators.count(o) / n for o in "+-*/"]
    last = [view.operators[-1] == o for o in "+-*/"]
    return [
        min(misfit, 4) / 4,
        misfit <= 1,
        *share,
        *last,
        any(len(set(s.numbers)) < len(s.numbers) for s in view.steps),
    ]


def _answer(view: _View) -> list[float]:
    results = [s.result for s in view.steps]
    answer = results[-1]
    largest = max(view.question.stated, default=1)
    return [
        answer.denominator == 1,
        all(r.denominator == 1 for r in results),
        answer in view.question.stated,
        answer in results[:-1],
        log10(answer) / 6,
        min(max(log10(answer) - log10(largest or 1), -2), 4) / 4,
        answer % 5 == 0,
        100 % answer.denominator != 0,
    ]


def _words(view: _View) -> list[float]:
    """+1 where a key word meets its operation, -1 where it misses it, 0 without it."""
    last = view.operators[-1]
    row: list[float] = [
        (1 if last == operator else -1) if words & view.question.goal else 0
        for words, operator in GOALS.values()
    ]
    pairs = {(o, n) for s in view.steps for o in s.operators for n in s.numbers}
    done = {(o, "") for o in view.operators} | {(o, str(n)) for o, n in pairs}
    for words, wanted in CUES.values():
        present = words & view.question.words
        row.append((1 if done.intersection(wanted) else -1) if present else 0)
    return row
