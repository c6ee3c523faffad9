"""Rows I: evaluation and metrics."""

from __future__ import annotations

from dapo_lib.conformance.rows.row import Case, Row


def _pass(n: int, c: int, k: int, right: float) -> Case:
    return Case("pass_at_k", {"n": n, "c": c, "k": k}, right)


ROWS = (
    Row(
        "I01",
        "verl#1320, verl#1419, verl#7240",
        (_pass(4, 1, 2, 0.5), _pass(32, 1, 32, 1.0)),
    ),
    Row("I02", "prime-rl#1834", (_pass(10, 3, 5, 0.91667),)),
    Row(
        "I11",
        "TRL#6380",
        (Case("mean_share", {"counts": [[1, 2], [0, 98]]}, 0.01),),
    ),
    Row(
        "I12",
        "the temperature of a logged entropy is seldom said",
        (
            Case("entropy", {"logits": [2.0, 0.0]}, 0.36533),
            Case("entropy", {"logits": [2.0, 0.0], "temperature": 0.5}, 0.09010),
        ),
    ),
)
