"""Paste an answer, see verdict and reason (chapter 1).

The browser applies the very tables of `dapo_lib/verifier/rules.py`, sent as data.
Left out: writing verdicts back to Python; call `dapo_lib.verifier.verify` there.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import traitlets

from dapo_lib.labels import Lang, label
from dapo_lib.verifier import MODES, REASONS, rules, verify
from dapo_lib.widgets.base import DapoWidget


@cache
def rules_as_data() -> dict[str, Any]:
    """The verifier's tables as JSON: patterns as their source, sets as sorted lists.

    >>> rules_as_data()["hash_mark"], rules_as_data()["max_answer"]
    ('####', 256)
    """
    return {
        "modes": list(MODES),
        "max_answer": rules.MAX_ANSWER,
        "window": rules.WINDOW,
        "max_exponent_digits": rules.MAX_EXPONENT_DIGITS,
        "same_character": {chr(k): v for k, v in rules.SAME_CHARACTER.items()},
        "same_latex": [list(pair) for pair in rules.SAME_LATEX],
        "wrappers": {k: [list(p) for p in v] for k, v in rules.WRAPPERS.items()},
        "emphasis": rules.EMPHASIS,
        "full_stops": rules.FULL_STOPS,
        "variable": rules.VARIABLE.pattern,
        "marks": [[kind, pattern.pattern] for kind, pattern in rules.MARKS],
        "closing": rules.CLOSING,
        "hash_mark": rules.HASH_MARK,
        "letter_mark": rules.LETTER_MARK,
        "display": dict(rules.DISPLAY),
        "special": rules.SPECIAL.pattern,
        "decimal": rules.DECIMAL.pattern,
        "frac": rules.FRAC.pattern,
        "currency": rules.CURRENCY.pattern,
        "unit": rules.UNIT.pattern,
        "numeric_start": rules.NUMERIC_START.pattern,
        "multipliers": sorted(rules.MULTIPLIERS),
        "diagnoses": [[code, pattern.pattern] for code, pattern in rules.DIAGNOSES],
    }


class VerifierExplorer(DapoWidget):
    """A response, a ground-truth answer and a mode -> verdict, reading, reason.

    >>> VerifierExplorer(response="Answer: 3 4", reference="34").describe("en")[:60]
    'The verifier reads “3 4”. Refused: more than one value. Blan'
    """

    name = "verifier"
    response = traitlets.Unicode("9 + 25 = 34. **Answer:** 34.").tag(sync=True)
    reference = traitlets.Unicode("34").tag(sync=True)
    mode = traitlets.Enum(MODES, MODES[0]).tag(sync=True)
    rules = traitlets.Dict().tag(sync=True)

    def __init__(self, lang: Lang = "en", **traits: object) -> None:
        super().__init__(lang, **{"rules": rules_as_data(), **traits})

    def texts_in(self, lang: Lang) -> dict[str, str]:
        """The widget's own words and the reason of every verdict."""
        reasons = {
            f"reason_{code}": label(f"verifier.{code}", lang) for code in REASONS
        }
        return super().texts_in(lang) | reasons

    def describe(self, lang: Lang | None = None) -> str:
        """The verdict on the response shown, in a sentence."""
        lang = lang or self.lang
        verdict = verify(self.response, self.reference, mode=self.mode)
        reason = label(f"verifier.{verdict.reason}", lang)
        text = verdict.extracted or "–"
        return self.words("describe", lang, text=text, reason=reason)
