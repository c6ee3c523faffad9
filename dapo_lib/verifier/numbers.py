"""Reading one answer as an exact number: integers, decimals, fractions, percentages.

Left out: evaluation. `9^9` is an expression, not a number, and is refused by name;
a number is read from its digits into `int` or `Fraction`, never through a float.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from dapo_lib.verifier import rules


class Number(NamedTuple):
    """The value of an answer, or the reason why it has none."""

    value: int | Fraction | None
    fault: str = ""


def read(answer: str, *, gsm8k: bool = False) -> Number:
    """The exact value of an answer without its mark.

    With ``gsm8k`` a currency sign, one unit and a percent sign are dropped first.

    >>> read("-1,234").value, read(r"\\dfrac{1}{2}").value, read("50%").value
    (-1234, Fraction(1, 2), Fraction(1, 2))
    >>> read("$18 dollars", gsm8k=True).value, read("18 dollars").fault
    (18, 'words_beside')
    """
    if answer.isascii() and answer.isdigit() and len(answer) <= rules.MAX_ANSWER:
        return Number(int(answer))
    if len(answer) > rules.MAX_ANSWER:
        return Number(None, "too_long")
    text = clean(answer)
    if gsm8k:
        text, multiplied = _without_unit(text)
        if multiplied:
            return Number(None, "multiplier_word")
    number = _number(text)
    return number if number else Number(None, diagnose(text))


def clean(answer: str) -> str:
    """Same characters, no wrappers, no emphasis, no full stop, no `x =`."""
    text = answer if answer.isascii() else answer.translate(rules.SAME_CHARACTER)
    if "\\" in text or "{" in text:
        for spelled, meant in rules.SAME_LATEX:
            text = text.replace(spelled, meant)
    text = _unwrap(text.strip(rules.EMPHASIS))
    if text[-1:] in rules.FULL_STOPS and text[-2:-1] not in rules.FULL_STOPS:
        text = _unwrap(text[:-1].strip(rules.EMPHASIS))
    if named := rules.VARIABLE.match(text):
        text = _unwrap(text[named.end() :])
    return text


def _unwrap(text: str) -> str:
    """Take off pairs around the whole text until none is left."""
    while text[:1] in rules.WRAPPERS and text:
        for opening, closing in rules.WRAPPERS[text[0]]:
            whole = text.startswith(opening) and text.endswith(closing)
            if whole and len(text) >= len(opening) + len(closing):
                break
        else:
            return text
        text = text[len(opening) : len(text) - len(closing)].strip(rules.EMPHASIS)
    return text


def _number(text: str) -> Number | None:
    """A number, a number at fault (too large, over zero), or None: not a number."""
    if text.endswith("%"):
        part = _number_without_percent(_unwrap(_before_percent(text)))
        if part is None or part.value is None:
            return part
        return Number(_plain(Fraction(part.value) / 100))
    return _number_without_percent(text)


def _before_percent(text: str) -> str:
    return text[:-1].removesuffix("\\").rstrip()


def _number_without_percent(text: str) -> Number | None:
    if found := rules.FRAC.fullmatch(text):
        sign, above, below = found.groups()
        return _quotient(sign, above.strip("{}"), below.strip("{}"))
    if "/" in text:
        above, _, below = text.partition("/")
        return _quotient("", above, below)
    return _decimal(text)


def _quotient(sign: str, above: str, below: str) -> Number | None:
    a, b = _decimal(above.strip()), _decimal(below.strip())
    if a is None or b is None:
        return None
    if a.value is None or b.value is None:
        return a if a.value is None else b
    if b.value == 0:
        return Number(None, "zero_denominator")
    value = Fraction(a.value, b.value)
    return Number(_plain(-value if sign == "-" else value))


def _decimal(text: str) -> Number | None:
    if text.isascii() and text.isdigit():
        return Number(int(text))
    found = rules.DECIMAL.fullmatch(text)
    if not found:
        return None
    sign, grouped, plain, after, exponent = found.groups()
    before, after = (grouped or plain or "").replace(",", ""), after or ""
    if not before and not after:
        return None
    power = _power(exponent)
    if power is None:
        return Number(None, "number_too_large")
    value = int(sign + before + after)
    return Number(_scaled(value, power - len(after)))


def _power(exponent: str | None) -> int | None:
    if not exponent:
        return 0
    small = len(exponent.lstrip("+-")) <= rules.MAX_EXPONENT_DIGITS
    return int(exponent) if small else None


def _scaled(value: int, power: int) -> int | Fraction:
    if power >= 0:
        return value * 10**power
    return _plain(Fraction(value, 10**-power))


def _plain(value: Fraction) -> int | Fraction:
    return value.numerator if value.denominator == 1 else value


def _without_unit(text: str) -> tuple[str, bool]:
    """A GSM8K answer without currency and unit; True where a word would scale it."""
    if found := rules.CURRENCY.match(text):
        text = found[1] + text[found.end() :].lstrip()
    found = rules.UNIT.search(text)
    if found is None or found.start() == 0:
        return text, False
    words = found[0].replace("/", " ").split()
    if any(word.lower() in rules.MULTIPLIERS for word in words):
        return text, True
    return text[: found.start()].rstrip(), False


def diagnose(text: str) -> str:
    """The reason code for a cleaned text that is not a number.

    >>> [diagnose(t) for t in ("1,2,3", "3 4", "3:00", "34 cm", "9^9")]
    ['bad_separators', 'several_values', 'colon', 'words_beside', 'expression']
    """
    if not text:
        return "empty_answer"
    for code, pattern in rules.DIAGNOSES:
        if pattern.match(text):
            return code
    return "not_a_number"
