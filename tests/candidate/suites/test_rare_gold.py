"""Clip-Higher lifts a rare right answer; shorter runs than the published ones."""

import pandas as pd
import pytest

from dapo_lib.candidate.suites import rare_gold

SEEDS = range(4)
SCHEDULE = rare_gold.SCHEDULE.model_copy(update={"rollouts": 96})  # six refreshes


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return rare_gold.run(
        SEEDS, starts=(0.05, 1 / 6), upper_clips=(0.2, 0.28), schedule=SCHEDULE
    )


def p_gold(frame, p0, eps_high):
    rows = frame[frame.arm == rare_gold.arm_name(p0, eps_high)]
    rows = rows[(rows.metric == "p_gold") & (rows.step == rows.step.max())]
    return rows.set_index("seed").value


def test_a_higher_clip_helps_a_rare_answer_in_every_seed(frame):
    low, high = p_gold(frame, 0.05, 0.2), p_gold(frame, 0.05, 0.28)
    assert (high > low).all() and (high - low).mean() > 0.05


def test_from_a_uniform_start_less_is_gained(frame):
    gain = (p_gold(frame, 1 / 6, 0.28) / p_gold(frame, 1 / 6, 0.2)).mean()
    rare = (p_gold(frame, 0.05, 0.28) / p_gold(frame, 0.05, 0.2)).mean()
    assert gain < 1.1 < 1.25 < rare


def test_what_is_clipped_upwards_is_rare(frame):
    together = frame[frame.seed == -1].set_index(["arm", "metric"]).value
    low, high = (rare_gold.arm_name(0.05, eps) for eps in (0.2, 0.28))
    assert together[low, "clip_high"] > together[high, "clip_high"] > 0
    assert together[low, "p_up_clipped"] < 1 / 1.2
    assert together[low, "responses"] >= 96 * 8


def test_the_start_is_the_start(frame):
    rows = frame[(frame.step == 0) & frame.arm.str.startswith("p0=0.05 ")]
    assert rows.value.tolist() == pytest.approx([0.05] * len(rows))


def test_bad_start_is_named():
    with pytest.raises(ValueError, match="p0: got 1"):
        rare_gold.start_logits(1)
