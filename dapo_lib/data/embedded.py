"""The embedded default: bilingual word problems from our own templates, seeded.

Every solution is in GSM8K's format (``<<48/2=24>>24``, ``#### 72``) and its numbers are
computed exactly. Left out: any text of GSM8K; nothing here is copied.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Literal

import yaml

from dapo_lib.data.arithmetic import decimal_text, evaluate
from dapo_lib.data.gsm8k import Data, from_rows
from dapo_lib.errors import BadInput, expect

Lang = Literal["en", "zh"]
TOTAL, TRAIN = 2000, 1600
LARGEST = 10_000  # numbers stay below it, so that no text needs a thousands separator
PLACES = 100  # the denominator of a result in a `decimals` template
_NAME = re.compile(r"[a-z][0-9]*")
_SLOT = re.compile(r"\{([a-z]+[0-9]*)\}")


@dataclass(frozen=True)
class Template:
    """One kind of problem; see the folder `problems` for what the fields mean."""

    name: str
    draw: dict[str, list]
    steps: list[str]
    en: dict
    zh: dict
    positive: tuple[str, ...] = ()
    decimals: bool = False


@dataclass(frozen=True)
class Instance:
    """A template with its numbers: `values` holds the drawn ones, then r1, r2, ..."""

    template: Template
    values: dict[str, Fraction]
    people: dict[str, int]

    def row(self, lang: Lang) -> dict[str, str]:
        """The problem as a GSM8K row in one language."""
        words = getattr(self.template, lang)
        slots = {name: decimal_text(value) for name, value in self.values.items()}
        for role, number in self.people.items():
            slots[role] = names()[role][lang][number]
        for number, step in enumerate(self.template.steps, start=1):
            expression, result = substitute(step, slots), slots[f"r{number}"]
            slots[f"s{number}"] = f"{expression} = <<{expression}={result}>>{result}"
        lines = [_fill(text, slots) for text in words["steps"]]
        answer = slots[f"r{len(self.template.steps)}"]
        return {
            "question": _fill(words["question"], slots),
            "answer": "\n".join([*lines, f"#### {answer}"]),
        }


def load_embedded(lang: Lang = "en", seed: int = 0) -> Data:
    """2,000 distinct problems, 1,600 to train, 400 to test, alike in both languages.

    The split is by problem: no template gives the same numbers twice. Raises
    ``BadInput`` on another language.

    >>> load_embedded().source.rows
    {'train': 1600, 'test': 400}
    """
    expect(lang in ("en", "zh"), "lang", repr(lang), "en or zh")
    rows = [instance.row(lang) for instance in instances(seed)]
    split = {"train": rows[:TRAIN], "test": rows[TRAIN:]}
    return from_rows(f"embedded ({lang}, seed {seed})", split)


@cache
def instances(seed: int = 0) -> tuple[Instance, ...]:
    """All problems in the order of the split; each template has an equal share."""
    made: list[Instance] = []
    every = templates()
    for number, template in enumerate(every):
        share = TOTAL // len(every) + (number < TOTAL % len(every))
        # a generator of its own: a new template changes no other's numbers
        made += _distinct(template, share, random.Random(f"{seed}/{template.name}"))
    random.Random(f"{seed}/order").shuffle(made)
    return tuple(made)


@cache
def templates() -> tuple[Template, ...]:
    """Every template, by file and then in file order.

    >>> len(templates()) >= 40
    True
    """
    found = []
    for name, loaded in _yaml():
        if name != "names.yml":
            found += [Template(name=key, **fields) for key, fields in loaded.items()]
    return tuple(found)


@cache
def names() -> dict[str, dict[str, list[str]]]:
    """role -> language -> names, the same place for the same person."""
    return dict(_yaml())["names.yml"]


def substitute(expression: str, slots: dict[str, str]) -> str:
    """An expression with its names replaced by numbers.

    >>> substitute("a+r1", {"a": "48", "r1": "24"})
    '48+24'
    """
    return _NAME.sub(lambda match: slots[match.group()], expression)


def solve(template: Template, drawn: dict[str, Fraction]) -> dict[str, Fraction] | None:
    """Drawn numbers and every step's exact result; None where a rule forbids them.

    A result must be above 0, below ``LARGEST``, and an integer or, under `decimals`, of
    at most two places.
    """
    values = dict(drawn)
    slots = {name: decimal_text(value) for name, value in values.items()}
    places = PLACES if template.decimals else 1
    for number, step in enumerate(template.steps, start=1):
        result = evaluate(substitute(step, slots))
        good = 0 < result < LARGEST and (result * places).denominator == 1
        if not good:
            return None
        values[f"r{number}"] = result
        slots[f"r{number}"] = decimal_text(result)
    fine = all(evaluate(substitute(p, slots)) > 0 for p in template.positive)
    return values if fine else None


def _distinct(template: Template, share: int, rng: random.Random) -> list[Instance]:
    seen: dict[tuple, Instance] = {}
    for _ in range(1000 * share):
        if len(seen) == share:
            return list(seen.values())
        drawn = {name: _pick(span, rng) for name, span in template.draw.items()}
        people = {role: rng.randrange(len(names()[role]["en"])) for role in names()}
        values = solve(template, drawn)
        if values is not None:
            seen.setdefault(tuple(values.values()), Instance(template, values, people))
    raise BadInput(
        f"problems/{template.name}: got {len(seen)} distinct problems, "
        f"expected {share}; widen its draw"
    )


def _pick(span: list, rng: random.Random) -> Fraction:
    low, high, step = (Fraction(str(x)) for x in (*span, 1)[:3])
    return low + step * rng.randrange(int((high - low) / step) + 1)


def _fill(text: str, slots: dict[str, str]) -> str:
    return _SLOT.sub(lambda match: slots[match.group(1)], text)


def _yaml() -> Iterator[tuple[str, dict]]:
    folder = files("dapo_lib.data.problems")
    for path in sorted(folder.iterdir(), key=lambda p: p.name):
        if path.name.endswith(".yml"):
            yield path.name, yaml.safe_load(path.read_text(encoding="utf-8"))
