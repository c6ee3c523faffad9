"""Rows D: KL, as exact expectations over a policy (.9, .1) against a uniform one."""

from __future__ import annotations

from dapo_lib.conformance.rows.row import Case, Convention, Row

_TWO = {"p": [0.9, 0.1], "ref": [0.5, 0.5]}


def _kl(estimator: str, right: float) -> Case:
    return Case("kl", {**_TWO, "estimator": estimator}, right)


ROWS = (
    Row(
        "D01",
        "rlhf-book source, rlhf-book#301, rlhf-book#384",
        (_kl("k3", 0.3681), _kl("k2", 0.2850)),
    ),
    Row("D02", "rlhf-book source", (_kl("k1", 0.3681),)),
    Row(
        "D03",
        "NeMo-RL#2506, open-instruct#534, TRL#4638, TRL#4967, TRL#2854",
        (
            Case(
                "kl_gradient",
                _TWO,
                0.1977,
                conventions=(Convention("gradient_of_the_other_kl", 0.4),),
            ),
        ),
    ),
)
