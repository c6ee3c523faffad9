"""The arms with a sampler apart; `on_time` is DAPO of the ladder, number for number."""

from __future__ import annotations

import pandas as pd
import pytest
import torch

from dapo_lib.experiments import detached, published
from dapo_lib.experiments.statistics import mean_interval
from dapo_lib.train import Schedule

SHORT = Schedule(rollouts=2, prompts_per_rollout=8, group_size=8, minibatches=4)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return published.load("detached")


def final(frame: pd.DataFrame) -> pd.DataFrame:
    rows = frame[frame.rollout == frame.rollout.max()]
    return rows.pivot(index="seed", columns="arm", values="eval_accuracy")


def test_on_time_is_the_ladder_s_dapo(frame) -> None:
    ladder = published.load("ladder")
    mine = frame[(frame.arm == "on_time") & frame.eval_accuracy.notna()]
    ladder = ladder[(ladder.arm == "dapo") & ladder.eval_accuracy.notna()]
    ladder = ladder[ladder.seed.isin(mine.seed)]
    index = ["seed", "rollout"]
    both = (x.set_index(index).eval_accuracy for x in (mine, ladder))
    pd.testing.assert_series_equal(*both, rtol=1e-4)


def test_lag_costs_and_clipping_against_the_late_sampler_costs_more(frame) -> None:
    table = final(frame)
    assert len(table) >= 10 and set(table) == set(detached.ARMS)
    for late, later in (("on_time", "lag_1"), ("lag_1", "lag_2"), ("lag_2", "lag_4")):
        assert mean_interval(table[late] - table[later]).low > 0, later
    for n in (4, 8):
        gap = table[f"lag_{n}_recomputed"] - table[f"lag_{n}"]
        assert mean_interval(gap).low > 0
    assert mean_interval(table.int4_recomputed - table.int4).low > 0


def test_a_job_is_what_the_table_holds(tmp_path) -> None:
    frame = detached.table(
        [0], ["lag_1"], SHORT, workers=1, folder=tmp_path, progress=False
    )
    assert frame.rollout.tolist() == [0, 1, 2]
    assert frame.eval_accuracy.notna().tolist() == [True, False, True]
    again = detached.table(
        [0], ["lag_1"], SHORT, workers=1, folder=tmp_path, progress=False
    )
    pd.testing.assert_frame_equal(frame, again)


def test_ratios_start_at_one_and_drift() -> None:
    seen = detached.drift(0, rollouts=1, schedule=SHORT)
    assert len(seen) == SHORT.minibatches
    spread = [float(x.abs().mean()) for x in seen]
    assert spread[0] == pytest.approx(0, abs=1e-5) and spread[-1] > 10 * spread[0]


def test_coarser_weights_mismatch_more() -> None:
    errors = [
        float(detached.mismatch(0, prompts=8, group_size=4, weights=w).abs().mean())
        for w in ("float32", "bfloat16", "int8", "int4")
    ]
    assert errors[0] == pytest.approx(0, abs=1e-5)
    assert errors == sorted(errors) and errors[3] > 10 * errors[2] > 0
    assert torch.isfinite(torch.tensor(errors)).all()
