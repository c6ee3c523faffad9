"""The table of paper numbers: the same rungs as ours, and arithmetic of its noise."""

from dapo_lib.experiments.arms import LADDER
from dapo_lib.experiments.paper import R1_ZERO, TABLE_1, resolution


def test_the_rungs_are_those_of_our_ladder_in_order():
    assert list(TABLE_1) == list(LADDER)


def test_the_two_sources_disagree_about_the_last_two_steps():
    def step(source):
        rungs = [getattr(TABLE_1[arm], source) for arm in ("soft", "token_level")]
        return rungs[1] - rungs[0], getattr(TABLE_1["dapo"], source) - rungs[1]

    assert step("paper") == (1, 8)
    assert step("rerun") == (6, 2)


def test_the_paper_ends_above_its_reference_line():
    assert TABLE_1["token_level"].paper < R1_ZERO < TABLE_1["dapo"].paper


def test_one_response_moves_an_evaluation_by_its_share():
    assert resolution(problems=1, samples=4) == 25
