"""What a question says about numbers: those it states, and those its words imply.

Left out: parsing of sentences. "Twice" implies 2 wherever it stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from dapo_lib.candidate.derivations import Number, exact

_NUMBER = re.compile(r"(\d+)/(\d+)|(\d[\d,]*(?:\.\d+)?|\.\d+)(%?)|([a-z]+)")
_SENTENCE = re.compile(r"[.?!]\s+")
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen "
    "fourteen fifteen sixteen seventeen eighteen nineteen twenty"
).split()
_TENS = "thirty forty fifty sixty seventy eighty ninety".split()
STATED: dict[str, Number] = {
    **{word: i for i, word in enumerate(_ONES)},
    **{word: 10 * i for i, word in enumerate(_TENS, 3)},
}
_IMPLIED_TEXT = """
half 2 1/2 | halves 2 1/2 | twice 2 | double 2 | doubled 2 | doubles 2 | both 2
pair 2 | pairs 2 | couple 2 | third 3 | thirds 3 | thrice 3 | triple 3 | tripled 3
triples 3 | quarter 4 1/4 | quarters 4 1/4 | fourth 4 1/4 | fourths 4 1/4
fifth 5 1/5 | fifths 5 1/5 | sixth 6 | sixths 6 | seventh 7 | eighth 8 1/8
eighths 8 1/8 | tenth 10 | dozen 12 | dozens 12 | hundred 100 | thousand 1000
million 1000000 | percent 100 1/100 | percentage 100 | day 24 7 | days 7 24
daily 7 | everyday 7 | week 7 | weeks 7 | weekly 7 | weekday 5 | weekdays 5
weekend 2 | weekends 2 | month 12 30 4 | months 12 30 4 | monthly 12
year 12 52 365 | years 12 52 365 | yearly 12 | annual 12 | annually 12 | hour 60
hours 60 | hourly 60 | minute 60 | minutes 60 | seconds 60 | foot 12 | feet 12 3
yard 3 | yards 3 | inch 12 | inches 12 | pound 16 | pounds 16 | decade 10 | score 20
cents 100 1/100 | cent 100 1/100 | dime 10 1/10 | dimes 10 1/10 | nickel 5 1/20
nickels 5 1/20 | pennies 100 | penny 100 | quarters 4 1/4 | meters 100
kilometers 1000 | kilograms 1000 | triplets 3 | twins 2 | average 2 | century 100
"""
IMPLIED: dict[str, tuple[Number, ...]] = {
    word: tuple(exact(Fraction(n)) for n in numbers)
    for word, *numbers in (
        entry.split() for entry in re.split(r"[|\n]", _IMPLIED_TEXT) if entry.strip()
    )
}


@dataclass(frozen=True, slots=True)
class Question:
    """The numbers and words of a question; `goal` are the words of its last sentence.

    `stated` keeps order and repetition; `implied` are those that words stand for,
    percents as parts of one, and the complement of each.
    """

    stated: tuple[Number, ...]
    implied: frozenset[Number]
    words: frozenset[str]
    goal: frozenset[str]


@lru_cache(maxsize=1 << 14)
def read(question: str) -> Question:
    """Find the numbers and the words of a question.

    >>> q = read("Ann has 1,200 pens and twice as many caps. 5% are red. How many?")
    >>> q.stated, 2 in q.implied, sorted(q.goal)
    ((1200, 5), True, ['how', 'many'])
    """
    lowered = question.lower()
    stated: list[Number] = []
    implied: set[Number] = set()
    words: set[str] = set()
    for over, under, number, percent, word in _NUMBER.findall(lowered):
        if over:
            stated += [int(over), int(under)]
            if int(under):
                part = Fraction(int(over), int(under))
                implied |= {exact(part), exact(1 - part), int(under) - int(over)}
        elif number:
            stated.append(exact(Fraction(number.replace(",", ""))))
            if percent:
                implied |= _percent(stated[-1])
        else:
            words.add(word)
            if word in STATED:
                stated.append(STATED[word])
            implied.update(IMPLIED.get(word, ()))
    if "percent" in words:
        implied |= {p for n in stated for p in _percent(n)}
    last = _SENTENCE.split(lowered.strip())[-1]
    goal = frozenset(m[4] for m in _NUMBER.findall(last) if m[4])
    return Question(tuple(stated), frozenset(implied), frozenset(words), goal)


def _percent(number: Number) -> set[Number]:
    part = exact(Fraction(number) / 100)
    whole = 100
    parts = {part, 1 - part, 1 + part, Fraction(1, whole)}
    return parts | {whole, whole - number, whole + number}
