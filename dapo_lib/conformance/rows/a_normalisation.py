"""Rows A: what is divided by what. Token losses are given at ratio 1."""

from __future__ import annotations

from dapo_lib.conformance.rows.row import Case, Convention, Row, logs

_TWO_GROUPS = [[[1.0] * 4, [0.0] * 12]]


def _reduce(micro_batches, right, *conventions, **given) -> Case:
    given = {"micro_batches": micro_batches, **given}
    return Case("reduce", given, right, conventions=conventions)


ROWS = (
    Row(
        "A01",
        "verl#623, verl#906, SkyRL#1637",
        (_reduce([[[1.0] * 2], [[0.0] * 8]], 0.2),),
    ),
    Row("A02", "verl#7321", (_reduce([[[0.5] * 100], [[0.3] * 900]], 0.32),)),
    Row(
        "A03",
        "TRL#5619, TRL#6024",
        (
            _reduce([[[1.0] * 10]] * 2, 1.0, rollout_micro_batches=4),
            _reduce([[[1.0] * 10]] * 32, 1.0, rollout_micro_batches=8),
        ),
    ),
    Row(
        "A04",
        "TRL#6369, TRL#6439; ms-swift source",
        (
            _reduce(
                [[[1.0] * 10, [1.0] * 15, [1.0] * 5]],
                1.0,
                truncated=[[False, False, True]],
            ),
        ),
    ),
    Row(
        "A06",
        "ROLL#444",
        (_reduce([[[1.0, 1.0, 50.0]]], 1.0, masks=[[[1, 1, 0]]]),),
    ),
    Row(
        "A07",
        "unsloth-zoo#1286",
        (
            Case(
                "loss",
                {"log_ratio": [[0.0, 0.0]], "advantages": [1.0], "mask": [[0, 0]]},
                {"loss": 0.0, "grad": [[0.0, 0.0]]},
            ),
        ),
    ),
    Row(
        "A08",
        "verl#3741",
        tuple(
            _reduce([[[1.0] * 4]], 0.5, reduction="seq_sum_const", l_max=8, width=width)
            for width in (4, 8)
        ),
    ),
    Row(
        "A09",
        "verl#2776, TRL#5375, TRL#5381, TRL#5828",
        (_reduce(_TWO_GROUPS, 0.25, Convention("per_group", 0.5), groups=[[0, 1]]),),
    ),
    Row(
        "A11",
        "Liger-Kernel#1082",
        (
            _reduce([[[1.0] * n] for n in (2, 4, 4, 10)], 1.0),
            _reduce([[[1.0] * n for n in (2, 4, 4, 10)]], 1.0),
        ),
    ),
    Row(
        "A13",
        "hands-on-modern-rl#75, reasoning-from-scratch#243",
        (
            Case(
                "loss",
                {
                    "log_ratio": logs(1.1, 0.9, 1.5),
                    "advantages": [1.0],
                    "mask": [[1, 1, 1]],
                },
                {"loss": -3.28 / 3},
            ),
        ),
    ),
    Row(
        "A15",
        "SkyRL and torchrl sources",
        (
            _reduce(
                [[[1.0], [0.0] * 3]],
                0.25,
                reduction="group_token_mean",
                groups=[[0, 0]],
            ),
        ),
    ),
)
