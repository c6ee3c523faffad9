"""Where the answer stands in a response: the last mark decides, the whole text is read.

Left out: a second try. When the last mark holds no answer (an unclosed box, an empty
line) an earlier one is not taken instead.
"""

from __future__ import annotations

from typing import NamedTuple

from dapo_lib.verifier import rules
from dapo_lib.verifier.numbers import read


class Span(NamedTuple):
    """The text of an answer, or the reason why there is none."""

    text: str | None
    fault: str = ""
    bare: bool = False


def extract(text: str, mode: str) -> Span:
    """The last answer of a text under a mode; linear in its length.

    >>> extract(r"\\boxed{12} or \\boxed{34}, done.", "auto").text
    '34'
    >>> extract(r"so \\boxed{34", "auto").fault
    'unclosed_box'
    """
    if not text.strip():
        return Span(None, "empty_response")
    if mode == "gsm8k":
        return _gsm8k(text)
    at, kind = _last_mark(text)
    hashed = _hash_line(text, at) if mode != "answer" else None
    if hashed is not None:
        return hashed
    if kind == "box":
        return _boxed(text, at)
    if kind == "line":
        return _line(text, at)
    return _bare(text) if mode != "answer" else Span(None, "no_answer")


def _last_mark(text: str) -> tuple[int, str]:
    """End of the last mark and its kind; (-1, "") without one."""
    last, kind = -1, ""
    for name, pattern in rules.MARKS:
        for found in pattern.finditer(text):
            if found.end() > last:
                last, kind = found.end(), name
    return last, kind


def _hash_line(text: str, after: int) -> Span | None:
    """A `####` line past every other mark, unless it is a heading in words."""
    at = text.rfind(rules.HASH_MARK)
    if at < max(after, 0) or (at > 0 and text[at - 1] != "\n"):
        return None
    span = _line(text, at + len(rules.HASH_MARK))
    plain = span.text is not None and read(span.text).fault == ""
    return span if plain else None


def _gsm8k(text: str) -> Span:
    """The last `#### …` or the last line `A: …`, whichever comes later."""
    hashed = text.rfind(rules.HASH_MARK)
    letter = text.rfind("\n" + rules.LETTER_MARK) + 1
    if letter == 0 and not text.startswith(rules.LETTER_MARK):
        letter = -1
    if max(hashed, letter) < 0:
        return Span(None, "no_answer")
    mark = rules.HASH_MARK if hashed > letter else rules.LETTER_MARK
    return _line(text, max(hashed, letter) + len(mark))


def _boxed(text: str, start: int) -> Span:
    """From the opening brace of a box to the one that closes it."""
    depth, end = 1, min(len(text), start + rules.WINDOW)
    at = start
    while at < end:
        character = text[at]
        if character == "\\":
            at += 1
        elif character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                return _checked(text[start:at])
        at += 1
    return Span(None, "unclosed_box" if end == len(text) else "too_long")


def _line(text: str, start: int) -> Span:
    """The first line with text after a mark, or the display formula it opens."""
    window = text[start : start + rules.WINDOW].lstrip(rules.EMPHASIS)
    closing = rules.DISPLAY.get(window[:2])
    if closing and (end := window.find(closing, 2)) > 0:
        return _checked(window[: end + 2])
    line = window.partition("\n")[0].partition("\r")[0]
    return _checked(_without_special(line.partition(rules.CLOSING)[0]))


def _bare(text: str) -> Span:
    """A response that is nothing but its answer."""
    window = text.strip()[: rules.WINDOW]
    inner = _without_special(window)
    if len(inner) > rules.MAX_ANSWER or len(inner) == rules.WINDOW:
        return Span(None, "no_answer")
    return Span(inner, "" if inner else "empty_answer", bare=True)


def _without_special(window: str) -> str:
    """Skip special tokens in front, then stop at the first one."""
    at = 0
    while found := rules.SPECIAL.match(window, at):
        at = found.end()
    found = rules.SPECIAL.search(window, at)
    return window[at : found.start() if found else len(window)].strip()


def _checked(answer: str) -> Span:
    if not answer.strip(rules.EMPHASIS):
        return Span(None, "empty_answer")
    return Span(answer) if len(answer) <= rules.MAX_ANSWER else Span(None, "too_long")
