"""Rows C: clipping. The loss of one token is minus its objective."""

from __future__ import annotations

import math

from dapo_lib.conformance.rows.row import Case, Convention, Row, logs


def _token(ratio, advantage, loss, *conventions, grad=None, **given) -> Case:
    given = {
        "log_ratio": logs(ratio),
        "advantages": [advantage],
        "mask": [[1]],
        **given,
    }
    right = {"loss": loss} | ({} if grad is None else {"grad": [[grad]]})
    return Case("loss", given, right, conventions=conventions)


_DUAL_3 = Convention("dual_clip_3", {"loss": 3.0})
ROWS = (
    Row(
        "C01",
        "reasoning-from-scratch source",
        (
            _token(0.5, -1.0, 0.8, grad=0.0),
            _token(1.5, -1.0, 1.5, grad=1.5),
            _token(1.5, 1.0, -1.28, grad=0.0),
            _token(0.5, 1.0, -0.5, grad=-0.5),
        ),
    ),
    Row("C02", "reasoning-from-scratch source", (_token(5.0, 1.0, -1.28),)),
    Row("C03", "TRL#6019", (_token(1.1, 1.0, -1.0, eps_high=0.0),)),
    Row("C04", "minimind source", (_token(3.0, 1.0, -1.28),)),
    Row(
        "C06",
        "TRL#3144, TRL#3289, TRL#3032",
        (
            Case(
                "clip_shares",
                {
                    "log_ratio": [[math.log(r)] for r in (0.7, 0.7, 1.5, 1.5)],
                    "advantages": [1.0, -1.0, 1.0, -1.0],
                },
                {"low": 0.25, "high": 0.25},
                conventions=(Convention("one_merged_share", {"either": 0.5}),),
            ),
        ),
    ),
    Row(
        "C08",
        "verl source (pg_clipfrac_lower)",
        (
            Case(
                "clip_shares",
                {"log_ratio": logs(0.5), "advantages": [-1.0]},
                {"low": 1.0},
                conventions=(
                    Convention("lower_means_dual", {"low": 0.0, "either": 1.0}),
                    Convention("one_merged_share", {"either": 1.0}),
                ),
            ),
        ),
    ),
    Row(
        "C09",
        "verl-recipe script against verl's default",
        (
            _token(5.0, -1.0, 5.0, _DUAL_3),
            _token(5.0, -1.0, 5.0, dual_clip=10.0),
            _token(50.0, -1.0, 10.0, dual_clip=10.0),
        ),
    ),
    Row(
        "C11",
        "rllm#116, verl#2738, TRL#6407",
        (Case("entropy", {"logits": [0.0] * 16}, math.log(16)),),
    ),
)
