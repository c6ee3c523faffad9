"""The verifier as tables: what marks an answer, what wraps it, why one is refused.

Order matters in every table. Every pattern is anchored or bounded, none nests one
quantifier in another, so the time is linear in the text.
Left out: code. `extract.py` finds the span, `numbers.py` reads it.
"""

from __future__ import annotations

import re

MODES = ("auto", "answer", "gsm8k", "aime")

# One span is at most this long; a longer one is not an integer, decimal or fraction.
MAX_ANSWER = 256
# How far after a marker we look: the answer, its wrappers, and spaces before it.
WINDOW = 1024
MAX_EXPONENT_DIGITS = 3

# Full-width forms, minus signs and fraction slashes that mean their ASCII twin.
# Invisible characters vanish; no-break and ideographic spaces are spaces.
SAME_CHARACTER: dict[int, str] = {
    **{0xFF01 + i: chr(0x21 + i) for i in range(94)},
    **dict.fromkeys((0x2212, 0x2013, 0xFE63), "-"),
    **dict.fromkeys((0x2044, 0x2215), "/"),
    **dict.fromkeys((0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x200E, 0x200F), ""),
    **dict.fromkeys((0x00A0, 0x2002, 0x2003, 0x2009, 0x202F, 0x3000), " "),
    0xFFE5: "¥",
}

# LaTeX that changes the look of a number, never its value.
SAME_LATEX: tuple[tuple[str, str], ...] = (
    ("{,}", ","),
    (",\\! ", ","),
    ("\\!", ""),
    ("\\,", " "),
    ("\\;", " "),
    ("\\:", " "),
    ("\\ ", " "),
    ("\\quad", " "),
    ("\\displaystyle", ""),
    ("\\left(", "("),
    ("\\right)", ")"),
)

# Pairs that may stand around a whole answer, by the first character of the pair.
WRAPPERS: dict[str, tuple[tuple[str, str], ...]] = {
    "$": (("$$", "$$"), ("$", "$")),
    "\\": (
        ("\\(", "\\)"),
        ("\\[", "\\]"),
        ("\\text{", "}"),
        ("\\textbf{", "}"),
        ("\\mathbf{", "}"),
        ("\\mathrm{", "}"),
        ("\\boldsymbol{", "}"),
        ("\\bm{", "}"),
    ),
    "{": (("{", "}"),),
    "(": (("(", ")"),),
    '"': (('"', '"'),),
    "'": (("'", "'"),),
    "“": (("“", "”"),),
    "‘": (("‘", "’"),),
}
EMPHASIS = " \t\r\n*_`"
FULL_STOPS = ".。"
VARIABLE = re.compile(r"[A-Za-z] ?= ?")

# Where an answer begins: `Answer:`, `**Answer**:`, `The answer is:`, `答案：`, and
# the closing sentence of Minerva's prompt, which has no colon.
_TAIL = r"[\s*_]{0,4}(?:is|是|为)?[\s*_]{0,4}[:：]"
MARKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("line", re.compile(r"[Aa][Nn][Ss][Ww][Ee][Rr](?<![A-Za-z]......)" + _TAIL)),
    ("line", re.compile("答案" + _TAIL)),
    ("line", re.compile(r"[Ff]inal [Aa]nswer is\b")),
    ("line", re.compile("最终答案[是为]")),
    ("box", re.compile(r"\\boxed\s{0,4}\{")),
)
CLOSING = ". I hope it is correct"
HASH_MARK = "####"
LETTER_MARK = "A:"  # GSM8K's other form, at the start of a line
DISPLAY = {"$$": "$$", "\\[": "\\]"}

# Tokens of a tokenizer, left in by a decode that kept them.
SPECIAL = re.compile(
    r"<[|｜][^<>|｜\n]{1,48}[|｜]>"
    r"|</?(?:s|eos|bos|pad|unk|end_of_turn|start_of_turn)>|\[(?:EOS|PAD|SEP)\]"
)

# Numbers. The first group of a thousands-separated integer has no leading zero.
DECIMAL = re.compile(
    r"([+-]?) ?(?:([1-9][0-9]{0,2}(?:,[0-9]{3})+)|([0-9]*))"
    r"(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?"
)
FRAC = re.compile(
    r"([+-]?) ?\\[dtc]?frac ?(\{[^{}]*\}|[0-9]) ?(\{[^{}]*\}|[0-9])",
)

# GSM8K mode: a currency sign before, one unit after, as the data set writes them.
CURRENCY = re.compile(r"([+-]?) ?\\?[$€£¥]")
UNIT = re.compile(
    r" ?(?:\\text\{[^{}0-9]*\}|\\?%"
    r"|°[CF]?"
    r"|(?:square |cubic )?[^\W\d_]+[²³]?(?:(?:/| per )[^\W\d_]+[²³]?)?)$"
)
MULTIPLIERS = frozenset(
    "hundred thousand million billion trillion dozen half k".split()
    + "百 千 万 萬 亿 億 打 半".split()
)

# Why a span is not a number: the first pattern that matches names the reason.
_N = r"[+-]?[0-9][0-9,.]*"
DIAGNOSES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("no_digit", re.compile(r"[^0-9]*$")),
    ("colon", re.compile(_N + r" ?:")),
    ("bad_separators", re.compile(r"[+-]? ?[0-9][0-9,.]*$")),
    ("mixed_number", re.compile(r"[+-]?[0-9]+ *(?: [0-9]+ ?/|\\[dtc]?frac)")),
    ("several_values", re.compile(r"[(\[{\\]+" + _N + r"[,;]")),
    ("several_values", re.compile(_N + r"(?:[ ;、]| or | and |或|和)+" + _N)),
    ("words_beside", re.compile(r".*\\(?:text|mbox|mathrm)")),
    ("words_beside", re.compile(_N + r" ?(?:°|\^ ?\{? ?\\circ)")),
    (
        "expression",
        re.compile(
            r"[^A-Za-z]*(?:[-+*^×·√!/=~≈]|\\(?:times|cdot|sqrt|pi|frac|approx))"
        ),
    ),
    ("words_beside", re.compile(r"[\\$€£¥+-]* ?" + _N)),
    ("words_beside", re.compile(r".*[^\W\d_]")),
)

# A response without a mark that begins like this was meant as a bare answer.
NUMERIC_START = re.compile(r"[\s*_`$\\(\[{+−-]*[.０-９0-9]")

ACCEPTED = ("same", "equal_value")
REFUSED = (
    "different",
    "empty_response",
    "no_answer",
    "empty_answer",
    "unclosed_box",
    "too_long",
    "number_too_large",
    "zero_denominator",
    "multiplier_word",
    "not_an_integer",
    "out_of_range",
    *dict.fromkeys(code for code, _ in DIAGNOSES),
    "not_a_number",
)
UNPARSABLE = "reference_unparsable"
REASONS = (*ACCEPTED, *REFUSED, UNPARSABLE)
