"""Rows F: dynamic sampling. A prompt is known by how many of its answers are right."""

from __future__ import annotations

from dapo_lib.conformance.rows.row import Case, Row


def _keep(correct, rule_rewards, kept, rewards=None, **given) -> Case:
    given = {"correct": correct, "rule_rewards": rule_rewards, **given}
    return Case("keep", {**given, "rewards": rewards or rule_rewards}, kept)


def _refill(n_correct, need, right, group_size=4, **given) -> Case:
    given = {"n_correct": n_correct, "group_size": group_size, "need": need, **given}
    return Case("refill", given, right)


_SHORT = ([0] * 4, [-1.0] * 4, False, [-1.0, -1.0, -1.0, -1.5])
ROWS = (
    Row(
        "F01",
        "DAPO#22, DAPO#28",
        (_refill([0] * 100, 2, {"groups": [], "rounds": 10}, max_rounds=10),),
    ),
    Row(
        "F02",
        "sizing of F01",
        tuple(
            Case("dead_share", {"p": p, "group_size": g}, dead)
            for p, g, dead in ((0.05, 8, 0.6634), (0.05, 16, 0.4401), (0.02, 8, 0.8508))
        ),
    ),
    Row("F03", "NeMo-RL source", (_refill([0] * 40, 2, {"rounds": 3}, max_rounds=3),)),
    Row(
        "F04",
        "ms-swift source",
        (
            _refill(
                [0, 2, 0, 4, 1, 0, 3, 0, 4, 0, 0],
                4,
                {"groups": [1, 4, 6]},
                max_rounds=3,
            ),
        ),
    ),
    Row(
        "F05",
        "OpenRLHF#1270",
        (
            _keep([0, 0, 1, 0], [-1.0, -1.0, 1.0, -1.0], True),
            _keep([0] * 4, [0.5] * 4, False),
        ),
    ),
    Row(
        "F06",
        "AReaL documentation",
        (
            _keep([0, 0, 1, 0], [-1.0, -1.0, 1.0, -1.0], True),
            _keep([0, 0, 1, 0], [0.0, 0.0, 1.0, 0.0], True),
        ),
    ),
    Row("F07", "verl-recipe#125, NeMo-RL#2431, AReaL#450", (_keep(*_SHORT),)),
    Row("F08", "verl and NeMo-RL sources", (_keep([0] * 6, [0.1] * 6, False),)),
    Row(
        "F10",
        "OpenRLHF#1310, OpenRLHF#1312",
        (_refill([1, 2, 0, 3, 1, 4, 2], 8, {"groups": [0, 1, 3, 4, 6]}),),
    ),
    Row(
        "F11",
        "prime-rl#1205",
        (
            _refill(
                [0, 0, 2],
                3,
                {"accuracy_before": 1 / 6, "accuracy_after": 0.5},
                max_rounds=1,
            ),
        ),
    ),
    Row(
        "F13",
        "NeMo-RL#602, Awesome-ML-SYS-Tutorial#178",
        (
            _refill(
                [1, 2, 3, 0, 4] * 3,
                5,
                {"drawn": 15, "surplus": 4, "groups": [0, 1, 2, 5, 6]},
                oversample=3.0,
            ),
        ),
    ),
    Row(
        "F15",
        "reasoning-from-scratch source",
        (_refill([0, 4, 2, 1], 2, {"groups": [2, 3], "drawn": 4}),),
    ),
    Row(
        "F17",
        "CoursIA#10603",
        tuple(
            Case("dead_share", {"p": 0.1838, "group_size": g}, dead, 1e-3)
            for g, dead in ((2, 0.70), (8, 0.1970))
        ),
    ),
    Row("F19", "verl#7792", (_keep(*_SHORT, default_metric=True),)),
)
