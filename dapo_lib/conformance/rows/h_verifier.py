"""Rows H: the answer checker. Each form stands in a box, in an answer line, or both."""

from __future__ import annotations

from dapo_lib.conformance.rows.row import Case, Row


def _grade(response: str, reference: str, right: bool, **given: str) -> Case:
    given = {"response": response, "reference": reference, **given}
    return Case("grade", given, right)


def _both(answer: str, reference: str, right: bool) -> tuple[Case, Case]:
    line, box = f"Answer: {answer}", rf"So it is \boxed{{{answer}}}."
    return _grade(line, reference, right), _grade(box, reference, right)


_TEXT = " and so on" * 12  # 120 characters
ROWS = (
    Row("H01", "verl#7440", (_grade(rf"\boxed{{34}}{_TEXT}", "34", True),)),
    Row("H02", "verl math_dapo", (_grade(f"Answer: 34\n{_TEXT * 3}", "34", True),)),
    Row(
        "H04",
        "Math-Verify 0.9.0",
        (
            _grade(r"\boxed{12} or \boxed{34}", "34", True),
            _grade(r"\boxed{12} or \boxed{34}", "12", False),
        ),
    ),
    Row(
        "H06",
        "ai-agent-book#173, NeMo-Gym#1844",
        (_grade(r"\boxed{\frac{1}{2}}", r"\frac{1}{2}", True),),
    ),
    Row("H07", "verl math_dapo", (_grade("Answer: 34.", "34", True),)),
    Row("H08", "verl math_dapo", (_grade("**Answer:** 34", "34", True),)),
    Row(
        "H09",
        "verl math_dapo, Math-Verify",
        (_grade("答案：34", "34", True), _grade("Answer：34", "34", True)),
    ),
    Row("H10", "simple_GRPO source, verl math_dapo", _both("-1,234", "-1234", True)),
    Row("H12", "verl math_dapo", _both("3 4", "34", False)),
    Row("H13", "verl math_dapo, Math-Verify", _both("\u22125", "-5", True)),
    Row(
        "H14",
        "verl math_dapo",
        tuple(
            case
            for answer in ("034", "34.0", "+34", "(34)", "\uff13\uff14")
            for case in _both(answer, "34", True)
        ),
    ),
    Row(
        "H15",
        "verl math_dapo",
        (*_both("0.5", "1/2", True), *_both(r"\dfrac{1}{2}", "1/2", True)),
    ),
    Row(
        "H17",
        "Math-Verify 0.9.0",
        (*_both("3:00", "3", False), *_both("1e3", "1000", True)),
    ),
    Row("H19", "verl math_dapo", (_grade("Answer: 34<|im_end|>", "34", True),)),
    Row(
        "H20",
        "EasyR1#26",
        (_grade("", "4", False, prompt=r"Put the answer in a box: \boxed{4}"),),
    ),
    Row("H21", "Trinity-RFT#566", (_grade("Answer: 34", "34", True),)),
    Row(
        "H23",
        "ms-swift#3925",
        (
            Case(
                "accuracy",
                {"correct": [1, 0, 0, 0], "rewards": [1.0, -1.0, -1.0, -1.0]},
                0.25,
            ),
        ),
    ),
    Row(
        "H24",
        "first against last answer",
        (
            _grade("Answer: 34\nNo, wait.\nAnswer: 12", "34", False),
            _grade("Answer: 34\nNo, wait.\nAnswer: 12", "12", True),
        ),
    ),
    Row("H25", "Math-Verify#70", (_grade(r"\dfrac{9}{7}", "9/7", True),)),
)
