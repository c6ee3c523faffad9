"""Rows E: numerics and log-probabilities."""

from __future__ import annotations

from dapo_lib.conformance.rows.row import Between, Case, Row


def _far(log_ratio: float) -> Case:
    given = {"log_ratio": [[log_ratio]], "advantages": [-1.0], "mask": [[1]]}
    right = {"loss": Between(0.0, 4.86e8), "grad": [[Between(0.0, 4.86e8)]]}
    return Case("loss", {**given, "dtype": "float32"}, right)


ROWS = (
    Row(
        "E01",
        "NeMo-RL#4120",
        (
            Case(
                "loss",
                {
                    "log_ratio": [[0.0, 100.0]],
                    "advantages": [-1.0],
                    "mask": [[1, 0]],
                    "dtype": "float32",
                },
                {"loss": 1.0, "grad": [[1.0, 0.0]]},
            ),
        ),
    ),
    Row("E02", "slime#2198", (_far(88.0), _far(89.0))),
    Row(
        "E03",
        "verl#5953, verl#6280, TRL#4303",
        (Case("log_prob", {"logits": [[10.03, 9.97]], "tokens": [0]}, [-0.66360]),),
    ),
    Row(
        "E04",
        "TRL#3029, NeMo-RL#935, simple_GRPO source",
        (
            Case(
                "log_prob",
                {
                    "logits": [[2.0, 0.0], [2.0, 0.0]],
                    "tokens": [0, 1],
                    "temperature": 0.5,
                },
                [-0.018150, -4.018150],
            ),
        ),
    ),
    Row(
        "E09",
        "every masked_mean helper",
        (
            Case(
                "reduce",
                {"micro_batches": [[[3.0, 4.0]]], "masks": [[[0, 0]]]},
                0.0,
            ),
        ),
    ),
    Row(
        "E10",
        "verl source (reward at the last valid token)",
        (
            Case(
                "shaped_reward",
                {"correct": False, "length": 0, "l_max": 20, "l_cache": 4},
                -1.0,
                conventions=(),
            ),
        ),
    ),
)
