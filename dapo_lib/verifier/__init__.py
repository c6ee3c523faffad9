"""A strict, small answer verifier: take the last answer, read it, compare exactly.

The response alone is read, never the prompt. Every verdict carries a reason code,
worded for readers in `labels/verifier.yml`. Time is linear in the text; nothing is
evaluated, no signal or recursion is used, and no state is shared but a cache of
references, so threads may call it at will.
Left out: symbolic answers (intervals, tuples, radicals, π), units outside GSM8K mode,
spaces or decimal commas as separators, and fuzzy equality.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from dapo_lib.errors import BadInput, expect
from dapo_lib.verifier import rules
from dapo_lib.verifier.extract import Span, extract
from dapo_lib.verifier.numbers import Number, read
from dapo_lib.verifier.rules import MODES, REASONS

__all__ = ["MODES", "REASONS", "Verdict", "verify"]

AIME_RANGE = range(1000)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a response is right, what was read, and why.

    `correct` is None where the reference cannot be read: the group is removed, it is
    not wrong. `extracted` is the response's own text, `value` its exact number.
    """

    correct: bool | None
    extracted: str | None
    reason: str
    value: int | Fraction | None = None

    @property
    def gradable(self) -> bool:
        """False where the reference, not the response, is at fault."""
        return self.correct is not None


def verify(response: str, reference: str | int, *, mode: str = "auto") -> Verdict:
    """Grade one response against the ground-truth answer.

    Modes: `auto` reads a box, `Answer:`, `答案：`, a `####` line, or a bare answer;
    `answer` a box or an answer line only; `gsm8k` a `####` or `A:` line, as that data
    set writes them; `aime` what `auto` reads, integers 0 to 999 only.
    Raises ``ValueError`` on an unknown mode or arguments that are not text.

    >>> verify("So it is **Answer:** 34.", "34")
    Verdict(correct=True, extracted='34.', reason='equal_value', value=34)
    >>> verify("答案：０.５", "1/2").correct, verify("3:00", "3").reason
    (True, 'colon')
    >>> verify("Answer: 033", "33", mode="aime").correct
    True
    >>> verify("Answer: 4", "a prime").reason
    'reference_unparsable'
    """
    _check(response, mode)
    wanted = _read_reference(_text_of(reference), mode)
    if wanted is None:
        return Verdict(None, None, rules.UNPARSABLE)
    text, value = wanted
    span, number = _answer(response, mode)
    if number.value is None:
        return Verdict(False, span.text, number.fault)
    if number.value != value:
        return Verdict(False, span.text, "different", number.value)
    reason = "same" if span.text == text else "equal_value"
    return Verdict(True, span.text, reason, number.value)


def _check(response: str, mode: str) -> None:
    if mode not in MODES:
        expect(False, "mode", repr(mode), f"one of {', '.join(MODES)}")
    if not isinstance(response, str):
        expect(False, "response", type(response).__name__, "str")


def _text_of(reference: str | int) -> str:
    if isinstance(reference, str):
        return reference
    if isinstance(reference, int) and not isinstance(reference, bool):
        return str(reference)
    raise BadInput(f"reference: got {type(reference).__name__}, expected str or int")


def _answer(text: str, mode: str) -> tuple[Span, Number]:
    """The span of a text and its number under a mode, or the fault of either."""
    span = extract(text, mode)
    if span.text is None:
        return span, Number(None, span.fault)
    number = read(span.text, gsm8k=mode == "gsm8k")
    if span.bare and number.fault and not rules.NUMERIC_START.match(span.text):
        return Span(None), Number(None, "no_answer")
    if mode == "aime" and number.value is not None:
        number = _aime(number.value)
    return span, number


def _aime(value: int | Fraction) -> Number:
    if not isinstance(value, int):
        return Number(None, "not_an_integer")
    return Number(value) if value in AIME_RANGE else Number(None, "out_of_range")


def _read_reference(text: str, mode: str) -> tuple[str, int | Fraction] | None:
    """Long references are read each time, so that the cache stays small."""
    known = _reference if len(text) <= rules.WINDOW else _reference.__wrapped__
    return known(text, mode)


@lru_cache(maxsize=4096)
def _reference(text: str, mode: str) -> tuple[str, int | Fraction] | None:
    """A reference's text and value; None where it cannot be read."""
    span, number = _answer(text, mode)
    if span.fault == "no_answer" and mode in ("answer", "gsm8k"):
        # a data set may store the answer alone, whatever responses must look like
        span, number = Span(text.strip()), read(text.strip(), gsm8k=mode == "gsm8k")
    if number.value is None:
        return None
    return span.text or "", number.value
