"""The browser's verdicts against the library's, case by case."""

from __future__ import annotations

import itertools
import json
import os
import random
from pathlib import Path

import pytest

from dapo_lib.verifier import MODES, verify
from dapo_lib.widgets.verifier import rules_as_data

# the H rows of the conformance cases, (response, reference)
H_ROWS = [
    ("\\boxed{34}" + " and so on" * 12, "34"),
    ("Answer: 34\n" + "as we have seen. " * 30, "34"),
    ("\\boxed{12} or \\boxed{34}", "34"),
    ("\\boxed{\\frac{1}{2}}", "1/2"),
    ("Answer: 34.", "34"),
    ("**Answer:** 34", "34"),
    ("答案：34", "34"),
    ("Answer：34", "34"),
    ("-1,234", "-1234"),
    ("Answer: 3 4", "34"),
    ("Answer: −5", "-5"),
    *((f"Answer: {t}", "34") for t in ("034", "34.0", "+34", "(34)", "３４")),
    *((f"Answer: {t}", "1/2") for t in ("0.5", "\\dfrac{1}{2}", "\\frac12", "50%")),
    ("Answer: 3:00", "3"),
    ("Answer: 1e3", "1000"),
    ("Answer: 34<|im_end|>", "34"),
    ("", "4"),
    ("Answer: 34 … Answer: 12", "34"),
    ("\\dfrac{9}{7}", "9/7"),
    ("\\boxed{34", "34"),
    ("Answer: 1,2,3", "123"),
    ("Answer: 9^9^9^9", "9"),
    ("Answer: 4", "a prime"),
    ("work\n#### 18", "18"),
    ("A: $18 dollars", "18"),
    ("#### 5 million", "5"),
    ("Final Answer: The final answer is $34$. I hope it is correct.", "34"),
    ("最终答案是 34", "34"),
    ("Answer: $$\\n34\\n$$", "34"),
    ("Answer: 1e9999", "1"),
    ("Answer: 1/0", "1"),
    ("Answer: 1000", "1000"),
    ("Answer: -0", "0"),
    ("Answer: 3 1/2", "7/2"),
]
PIECES = (
    "Answer:",
    "answer is:",
    "答案：",
    "最终答案是",
    "The final answer is",
    "\\boxed{",
    "}",
    "####",
    "\nA:",
    "\n",
    " ",
    "34",
    "0.5",
    "1,234",
    "-7",
    "−3",
    "３４",
    "1/2",
    "\\frac{1}{2}",
    "\\dfrac12",
    "%",
    "\\%",
    "$",
    "$$",
    "\\[",
    "\\]",
    "**",
    "`",
    ".",
    "。",
    "x = ",
    "dollars",
    "千",
    "million",
    "km/h",
    "cm²",
    "(",
    ")",
    "{",
    "<|im_end|>",
    "</s>",
    "1e3",
    "1e9999",
    ":",
    ",",
    " or ",
    "\u00a0",
    "\u3000",
    "\u200b",
    "\u2028",
    "\\text{",
    "°",
    "^2",
    "é",
    "①",
    "½",
    "😀",
    "\x1c",
    "\t",
    "\r",
)


def check(node, cases: list) -> int:
    got = node("verifier", [["verifyAll", [cases, rules_as_data()]]])[0]
    for (response, reference, mode), mine in zip(cases, got, strict=True):
        right = verify(response, reference, mode=mode)
        value = None if right.value is None else str(right.value)
        theirs = (right.correct, right.extracted, right.reason, value)
        ours = tuple(mine[k] for k in ("correct", "extracted", "reason", "value"))
        assert ours == theirs, (response, reference, mode)
    return len(cases)


def test_conformance_rows_in_every_mode(node) -> None:
    check(node, [(*row, mode) for row in H_ROWS for mode in MODES])


def test_random_texts_get_the_same_verdict(node) -> None:
    rng = random.Random(23)
    cases = []
    for _ in range(4000):
        text = "".join(rng.choices(PIECES, k=rng.randrange(1, 9)))
        reference = rng.choice(("34", "1/2", "-7", "1234", "0.5", text))
        cases.append((text, reference, rng.choice(MODES)))
    check(node, cases)


def test_limits_and_hostile_texts(node) -> None:
    texts = ["{" * 100000, "\\boxed{" + "1" * 300, "Answer: " + "9" * 257, "A:" * 9999]
    texts += ["Answer: " + "9" * 256, "\\boxed{" + "{" * 500 + "}" * 501, "9^" * 50000]
    check(node, [(text, "34", mode) for text in texts for mode in MODES])


@pytest.mark.data
def test_cases_of_other_verifiers_get_the_same_verdict(node) -> None:
    root = os.environ.get("DAPO_DATA")
    if not root or not (folder := Path(root, "verifier")).is_dir():
        pytest.skip("DAPO_DATA names no folder with verifier/")
    texts: list[str] = []
    for file in sorted(folder.glob("*.json")):
        _strings(json.loads(file.read_text(encoding="utf-8")), texts)
    pairs = list(itertools.pairwise(texts))
    cases = [(a, b, "auto") for a, b in pairs] + [(a, a, "gsm8k") for a in texts]
    assert check(node, cases) > 500


def _strings(value, out: list[str]) -> None:
    if isinstance(value, str):
        out.append(value)
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            _strings(item, out)
