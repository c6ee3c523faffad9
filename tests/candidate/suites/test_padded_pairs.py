"""The soft penalty removes padding that has nothing to do with being right."""

import pytest

from dapo_lib.candidate.suites import padded_pairs

SCHEDULE = padded_pairs.SCHEDULE.model_copy(update={"rollouts": 100, "lr": 1.0})


@pytest.fixture(scope="module")
def last():
    arms = ("none token_mean", "soft token_mean")
    frame = padded_pairs.run(range(3), arms=arms, schedule=SCHEDULE, every=100)
    end = frame[frame.step == 100]
    return end.pivot_table(index=["arm", "seed"], columns="metric", values="value")


def test_padding_is_independent_of_being_right_at_the_start():
    world = padded_pairs.table()
    short, padded = world.length[:, ::2], world.length[:, 1::2]
    assert (padded - short == padded_pairs.PADDING).all()
    assert int(world.length.max()) == padded_pairs.SCHEDULE.l_max
    assert world.correct.sum(1).tolist() == [2] * padded_pairs.PROMPTS


def test_the_penalty_removes_padding_from_right_answers(last):
    assert last.loc["soft token_mean"].padded_if_right.max() < 0.3
    assert last.loc["soft token_mean"].length.max() < 38


def test_without_it_token_level_weighting_favours_padding(last):
    assert last.loc["none token_mean"].padded_if_right.min() > padded_pairs.P_PADDED


def test_accuracy_does_not_suffer(last):
    plain = last.loc["none token_mean"].accuracy.mean()
    assert last.loc["soft token_mean"].accuracy.mean() > plain - 0.05
    assert plain > 0.7
