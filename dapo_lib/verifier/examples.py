"""One answer for every reason code: what the page on the verifier shows in its table.

Left out: coverage. Real cases and public faults are in the tests.
"""

from __future__ import annotations

from typing import NamedTuple


class Example(NamedTuple):
    """A response, the ground-truth answer, and the mode in which it is graded."""

    response: str
    reference: str
    mode: str = "auto"


EXAMPLES: dict[str, Example] = {
    "same": Example("Answer: 34", "34"),
    "equal_value": Example("**Answer:** \\dfrac{68}{2}.", "34"),
    "different": Example("\\boxed{34} … \\boxed{12}", "34"),
    "empty_response": Example("", "34"),
    "no_answer": Example("9 + 25 = 34", "34", "answer"),
    "empty_answer": Example("Answer:", "34"),
    "unclosed_box": Example("so \\boxed{34", "34"),
    "too_long": Example("Answer: " + "3" * 257, "34"),
    "number_too_large": Example("Answer: 1e1000", "34"),
    "zero_denominator": Example("Answer: 34/0", "34"),
    "multiplier_word": Example("#### 34 dozen", "34", "gsm8k"),
    "not_an_integer": Example("Answer: 1/2", "34", "aime"),
    "out_of_range": Example("Answer: 1034", "34", "aime"),
    "no_digit": Example("Answer: thirty-four", "34"),
    "colon": Example("Answer: 3:00", "3"),
    "bad_separators": Example("Answer: 1,2,3", "123"),
    "mixed_number": Example("Answer: 1 1/2", "3/2"),
    "several_values": Example("Answer: 3 4", "34"),
    "expression": Example("Answer: 9 + 25", "34"),
    "words_beside": Example("Answer: 34 apples", "34"),
    "not_a_number": Example("Answer: (34", "34"),
    "reference_unparsable": Example("Answer: 34", "a prime"),
}
