"""What can be read off one model-written solution and its question: 60 numbers.

Never a feature that compares a solution with the others of its problem, and never which
model wrote it. Left out: understanding. A linear policy on these is a weak reader.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from math import log, log1p

EQUATION = re.compile(r"<<([^<>=]*)=([^<>]*)>>")
NUMBER = re.compile(r"\d[\d,]*\.?\d*|\.\d+")
TOKEN = re.compile(r"\d+|[^\W\d]+|[^\w\s]")
SPOKEN = {
    **dict(zip("one two three four five six seven eight".split(), range(1, 9))),  # noqa: B905
    **{"nine": 9, "ten": 10, "dozen": 12, "twice": 2, "double": 2, "half": 0.5},
    **{"third": 3, "quarter": 4, "week": 7},
}
CONSTANTS = {100, 12, 7, 60, 24, 365, 52, 30, 2, 0.5, 1000, 3, 4}
STOP = set(
    "the a an of to in is are was were and or for on with at by from that this it he "
    "she they his her their how many much does do did if what will be has have had "
    "there then as than each per".split()
)
# words of the question, and the operation that they often ask for
CUES = {
    "more": ("+", "more"),
    "fewer": ("-", "less fewer"),
    "twice": ("*", "twice double times"),
    "half": ("/", "half average"),
    "percent": ("*", "% percent"),
    "each": ("*", "each every"),
    "left": ("-", "left remain remaining change profit save"),
    "total": ("+", "total altogether"),
}


@dataclass(frozen=True)
class Reading:
    """A question and one solution, parsed once.

    `given` are the numbers of the question, `steps` the (operands, result, text) of
    each equation, `answer` the number after "A:" or None.
    """

    question: str
    solution: str
    given: list[float]
    steps: list[tuple[list[float], float | None, str]]
    answer: float | None
    lines: list[str]
    used: Counter = field(default_factory=Counter)


def numbers(text: str) -> list[float]:
    """Every number of a text, thousands separators dropped.

    >>> numbers("pays $1,200 for 3.5 kg.")
    [1200.0, 3.5]
    """
    return [float(m.replace(",", "").rstrip(".")) for m in NUMBER.findall(text)]


def count_tokens(solution: str) -> int:
    """Length in tokens: integers, words and symbols; at least 1.

    >>> count_tokens("5 + 6 = <<5+6=11>>11 pails.")
    16
    """
    return max(1, len(TOKEN.findall(solution)))


def read(question: str, solution: str) -> Reading:
    """Parse a solution in GSM8K's notation.

    >>> read("He has 5 and 6.", "So <<5+6=11>>11\\nA: 11").steps
    [([5.0, 6.0], 11.0, '5+6')]
    """
    steps = []
    for left, right in EQUATION.findall(solution):
        result = numbers(right)
        steps.append((numbers(left), result[0] if result else None, left))
    body, _, tail = solution.rpartition("A:")
    stated = numbers(tail) if body else []
    lines = [line for line in (body or solution).strip().split("\n") if line]
    used = Counter(x for operands, _, _ in steps for x in operands)
    answer = stated[-1] if stated else None
    return Reading(question, solution, numbers(question), steps, answer, lines, used)


def features(question: str, solution: str) -> dict[str, float]:
    """All features of one solution, by name; plain numbers of order one.

    >>> f = features("He has 5 and 6. How many in total?", "So <<5+6=11>>11\\nA: 11")
    >>> f["covered"], f["answer_is_last_result"], f["cue_total"]
    (1.0, 1.0, 1.0)
    """
    r = read(question, solution)
    groups = (
        _answer,
        _steps,
        _grounding,
        _coverage,
        _operations,
        _cues,
        _words,
        _style,
    )
    found = {name: value for group in groups for name, value in group(r).items()}
    return {name: float(value) for name, value in found.items()}


def _answer(r: Reading) -> dict[str, float]:
    a, largest = r.answer, max([*r.given, 1.0])
    has = a is not None
    a = a if has else 0.0
    last = r.steps[-1][1] if r.steps else None
    return {
        "answer_stated": has,
        "answer_integer": has and a == int(a),
        "answer_zero": has and a == 0,
        "answer_size": log1p(a) / 10,
        "answer_above_given": a > largest,
        "answer_far_above": a > 20 * largest,
        "answer_far_below": has and a < largest / 10,
        "answer_is_given": has and a in r.given,
        "answer_is_last_result": has and last is not None and abs(last - a) < 1e-6,
    }


def _steps(r: Reading) -> dict[str, float]:
    n = len(r.steps)
    results = [result for _, result, _ in r.steps if result is not None]
    unused = sum(x not in r.used for x in results[:-1])
    operators = [sum(c in "+-*/" for c in text) for _, _, text in r.steps]
    return {
        "steps": min(n, 8) / 4,
        "no_step": n == 0,
        "one_step": n == 1,
        "many_steps": n >= 6,
        "steps_minus_given": (n - len(set(r.given))) / 4,
        "steps_off_given": abs(n - len(set(r.given))) / 4,
        "same_equation_twice": len({text for *_, text in r.steps}) < n,
        "same_result_twice": len(set(results)) < len(results),
        "results_unused": unused / max(1, n),
        "results_all_used": unused == 0,
        "results_not_integer": sum(x != int(x) for x in results) / max(1, n),
        "last_uses_previous": n > 1 and r.steps[-2][1] in r.steps[-1][0],
        "long_equations": sum(o > 1 for o in operators) / 3,
    }


def _grounding(r: Reading) -> dict[str, float]:
    known = set(r.given)
    known |= {SPOKEN[w] for w in _all_words(r.question) if w in SPOKEN}
    if "%" in r.question:
        shares = [x / 100 for x in r.given]
        known |= {y for x in shares for y in (x, 1 - x, 1 + x, 100 - 100 * x)}
    total = grounded = constants = loose = chained = 0
    results: set[float] = set()
    for operands, result, _ in r.steps:
        for x in operands:
            total += 1
            grounded += x in known or x in results
            chained += x in results
            if x not in known and x not in results:
                constants += x in CONSTANTS
                loose += x not in CONSTANTS
        results.add(result)
    return {
        "grounded": grounded / max(1, total),
        "all_grounded": grounded == total,
        "chained": chained / max(1, total),
        "constants": constants / 3,
        "ungrounded": loose / 4,
        "any_ungrounded": loose > 0,
    }


def _coverage(r: Reading) -> dict[str, float]:
    given = Counter(r.given)
    missing = sum(x not in r.used for x in given)
    over = sum(max(0, r.used[x] - many) for x, many in given.items())
    return {
        "covered": 1 - missing / max(1, len(given)),
        "missing": missing / 4,
        "none_missing": missing == 0,
        "one_missing": missing == 1,
        "over_used": over / 4,
    }


def _operations(r: Reading) -> dict[str, float]:
    text = "".join(text for *_, text in r.steps)
    last = r.steps[-1][2] if r.steps else ""
    names = {"plus": "+", "minus": "-", "times": "*", "over": "/"}
    shares = {n: text.count(c) / max(1, len(r.steps)) for n, c in names.items()}
    ends = {f"last_{n}": c in last for n, c in names.items()}
    return shares | ends


def _cues(r: Reading) -> dict[str, float]:
    text = "".join(text for *_, text in r.steps)
    said = set(_all_words(r.question)) | set(r.question) & {"%"}
    return {
        f"cue_{name}": bool(said & set(words.split())) and operator in text
        for name, (operator, words) in CUES.items()
    }


def _words(r: Reading) -> dict[str, float]:
    sentences = re.split(r"(?<=[.?!])\s+", r.question.strip())
    asked, told = _content(sentences[-1]), _content(r.question)
    said, last = _content(r.solution), _content(r.lines[-1] if r.lines else "")
    return {
        "asked_in_last_line": len(asked & last) / max(1, len(asked)),
        "asked_in_solution": len(asked & said) / max(1, len(asked)),
        "told_in_solution": len(told & said) / max(1, len(told)),
        "new_words": len(said - told) / max(1, len(said)),
    }


def _style(r: Reading) -> dict[str, float]:
    text, lines = r.solution, max(1, len(r.lines))
    claims = re.findall(r"=([^<>=]*)>>\$?([\d,.]*)", text)
    agree = sum(numbers(a)[:1] == numbers(b)[:1] for a, b in claims)
    return {
        "log_length": log(count_tokens(text)) / 5,
        "lines_without_equation": sum("<<" not in x for x in r.lines) / 4,
        "words_a_line": len(_all_words(text)) / lines / 15,
        "text_agrees": agree / max(1, len(claims)),
        "commas": text.count(",") / 5,
        "dollars": text.count("$") / 5,
        "full_stops": text.count(".\n") / lines,
        "says_so": "So " in text or " so " in text,
        "says_then": "Then" in text or "Therefore" in text,
        "says_because": "because" in text or "since" in text,
    }


def _all_words(text: str) -> list[str]:
    return re.findall("[a-z]+", text.lower())


def _content(text: str) -> set[str]:
    return {word.removesuffix("s") for word in _all_words(text)} - STOP
