"""A policy learns what its grader accepts, right or not."""

import pytest

from dapo_lib.candidate.suites import written

SEEDS = range(6)


@pytest.fixture(scope="module")
def frame():
    return written.run(SEEDS)


def last(frame, arm, metric):
    rows = frame[(frame.arm == arm) & (frame.metric == metric)]
    return rows[rows.step == rows.step.max()].set_index("seed").value


def test_the_shares_are_a_distribution_and_the_hand_written_truth_is_ours():
    assert sum(w.share for w in written.ANSWERS) == pytest.approx(1)
    for answer in written.ANSWERS:
        assert written.by_value(answer.text) == answer.right, answer.text


def test_every_grader_is_satisfied_in_the_end(frame):
    for arm in written.GRADERS:
        assert (last(frame, arm, "accepted") > 0.9).all(), arm


def test_only_the_lenient_grader_teaches_wrong_answers(frame):
    assert (last(frame, "value", "right") > 0.9).all()
    assert (last(frame, "text", "right") > 0.9).all()
    assert last(frame, "digits", "right").mean() < 0.8


def test_all_graders_start_from_one_policy(frame):
    start = frame[(frame.step == 0) & (frame.metric == "right")]
    assert start.value.to_numpy() == pytest.approx(0.25)


def test_a_lane_is_the_run_of_its_seed_alone(frame):
    alone = written.run([3], graders=["digits"])
    whole = frame[(frame.arm == "digits") & (frame.seed == 3)]
    assert alone.value.to_numpy() == pytest.approx(whole.value.to_numpy(), abs=1e-12)


def test_an_unknown_grader_is_named():
    with pytest.raises(ValueError, match="grader"):
        written.table("judge")
