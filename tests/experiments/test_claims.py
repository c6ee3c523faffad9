"""What the pages claim of the published language-model runs: signs and intervals.

Exact values are not asserted: whoever runs the experiments again gets others.
"""

import pytest

from dapo_lib.experiments import published
from dapo_lib.experiments.catalogue import EXPERIMENTS
from dapo_lib.experiments.statistics import paired
from dapo_lib.experiments.summary import METRICS, at_rollout, summary

PUBLISHED = sorted(set(EXPERIMENTS) & set(published.names()))

# experiment, iteration, metric, arm minus other; the interval excludes zero
UP = [
    ("ladder", 8, "accuracy", "dapo", "naive"),
    ("ladder", 16, "accuracy", "dapo", "naive"),
    ("ladder", 8, "accuracy", "clip_higher", "filtering"),
    ("ladder", 8, "accuracy", "naive", "filtering"),
    ("ladder", 16, "accuracy", "naive", "filtering"),
    ("ladder", 8, "accuracy", "clip_higher", "soft"),
    ("ladder", 16, "accuracy", "soft", "clip_higher"),
    ("ladder", 8, "accuracy", "token_level", "soft"),
    ("ladder", 8, "accuracy", "dapo", "token_level"),
    ("ladder", 16, "accuracy", "dapo", "token_level"),
    ("ladder", 8, "truncation", "filtering", "naive"),
    ("second_warm_start", 8, "accuracy", "dapo", "naive"),
    ("second_warm_start", 16, "accuracy", "dapo", "naive"),
    ("second_warm_start", 8, "accuracy", "token_level", "naive"),
    ("single_factor", 8, "accuracy", "only_token_level", "naive"),
    ("single_factor", 8, "accuracy", "only_clip_50", "naive"),
    ("single_factor", 8, "accuracy", "only_clip_higher", "naive"),
    ("single_factor", 16, "accuracy", "naive", "only_soft"),
    ("single_factor", 16, "accuracy", "only_dynamic", "naive"),
    ("single_factor", 8, "accuracy", "naive", "only_soft"),
    ("single_factor", 8, "accuracy", "best_found", "naive"),
    ("leave_one_out", 8, "accuracy", "dapo", "without_clip_higher"),
    ("leave_one_out", 8, "accuracy", "dapo", "without_token_level"),
    ("leave_one_out", 8, "accuracy", "dapo", "without_dynamic"),
    ("leave_one_out", 16, "accuracy", "dapo", "without_dynamic"),
    ("equal_rollouts", 8, "accuracy", "twice_the_prompts", "dapo"),
    ("l_max", 16, "accuracy", "none_24", "none_18"),
    ("l_max", 8, "accuracy", "none_24", "soft_24"),
    ("l_max", 8, "accuracy", "none_18", "soft_18"),
    ("clip_rare", 12, "accuracy", "eps_1e+09", "eps_0.2"),
    ("coin_flip", 24, "entropy", "eps_0.5", "eps_0.2"),
    ("lookup_letter", 10, "accuracy", "eps_0.28", "eps_0.2"),
    ("lookup_letter", 10, "accuracy", "eps_0.5", "eps_0.2"),
    ("lookup_letter", 8, "entropy", "eps_0.28", "eps_0.2"),
    ("lookup_letter", 8, "entropy", "eps_0.5", "eps_0.2"),
    ("lookup_letter_second", 10, "accuracy", "eps_0.5", "eps_0.2"),
    ("lookup_letter_second", 8, "entropy", "eps_0.28", "eps_0.2"),
    ("lookup_letter_second", 8, "entropy", "eps_0.5", "eps_0.2"),
    ("collapse", 45, "accuracy", "low_0.1_high_0.5", "low_0.1_high_0.1"),
]
# and where the pages say that the runs cannot tell
UNDECIDED = [
    ("ladder", 16, "accuracy", "clip_higher", "filtering"),
    ("ladder", 16, "accuracy", "token_level", "soft"),
    ("ladder", 16, "accuracy", "soft", "naive"),
    ("single_factor", 8, "accuracy", "only_dynamic", "naive"),
    ("leave_one_out", 8, "accuracy", "without_soft", "dapo"),
    ("second_warm_start", 8, "accuracy", "dapo", "token_level"),
    ("equal_rollouts", 16, "accuracy", "dapo", "twice_the_prompts"),
    ("clip_rare", 12, "accuracy", "eps_0.28", "eps_0.2"),
    ("coin_flip", 24, "entropy", "eps_0.28", "eps_0.2"),
    ("lookup_letter", 15, "entropy", "eps_0.5", "eps_0.2"),
    ("lookup_letter_second", 10, "accuracy", "eps_0.28", "eps_0.2"),
]
# two tables that hold the same runs: the seeds are the same, so are the numbers
TWINS = [
    ("ladder", "naive", "single_factor", "naive"),
    ("ladder", "filtering", "single_factor", "only_filtering"),
    ("ladder", "dapo", "leave_one_out", "dapo"),
    ("ladder", "token_level", "leave_one_out", "without_dynamic"),
    ("ladder", "token_level", "equal_rollouts", "token_level"),
    ("ladder", "dapo", "equal_rollouts", "dapo"),
    ("clip_rare", "eps_0.28", "epsilon_grid", "low_0.2_high_0.28"),
]


def difference(name, rollout, metric, arm, other):
    wide = at_rollout(published.load(name), rollout, METRICS[metric])
    return paired(wide[other], wide[arm]).interval


@pytest.mark.parametrize(("name", "rollout", "metric", "arm", "other"), UP)
def test_what_is_claimed_excludes_zero(name, rollout, metric, arm, other):
    assert difference(name, rollout, metric, arm, other).low > 0


@pytest.mark.parametrize(("name", "rollout", "metric", "arm", "other"), UNDECIDED)
def test_what_is_said_to_be_undecided_is(name, rollout, metric, arm, other):
    assert not difference(name, rollout, metric, arm, other).excludes(0)


def test_length_falls_then_more_than_doubles_and_the_penalty_ends_cutting():
    frame = published.load("ladder")
    length = frame[frame.arm == "dapo"].groupby("rollout").eval_length.mean().dropna()
    assert length.min() < 5 < 6.5 < length[0]
    assert length[16] > 12
    cut = at_rollout(frame, 16, "eval_truncated")
    assert (cut[["soft", "token_level", "dapo"]].mean() < 0.01).all()


@pytest.mark.parametrize(("one", "arm", "two", "same"), TWINS)
def test_the_same_run_in_two_tables_is_the_same(one, arm, two, same):
    a, b = (published.load(name) for name in (one, two))
    a = a[(a.arm == arm)].set_index(["seed", "rollout"]).sort_index()
    b = b[(b.arm == same)].set_index(["seed", "rollout"]).sort_index()
    for column in ("responses", "tokens", "train_accuracy", "clip_high"):
        assert a[column].equals(b[column])


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_table_holds_what_the_catalogue_would_run(name):
    chosen, frame = EXPERIMENTS[name], published.load(name)
    assert list(frame.attrs["seeds"]) == list(chosen.seeds)
    assert set(frame.arm) == set(chosen.arms)
    for arm, run in chosen.arms.items():
        assert frame.attrs["arms"][arm] == run.model_dump(mode="json")
    assert len(frame.attrs["commit"]) == 40
    whole = frame.groupby(["arm", "seed"]).rollout.max()
    for arm, run in chosen.arms.items():
        assert (whole[arm] == run.schedule.rollouts).all()


def test_the_summary_says_every_arm_beside_the_first():
    found = summary(published.load("ladder"))
    assert found["arms"][0] == found["baseline"] == "naive"
    assert len(found["seeds"]) == 20
    for name in ("acc@8", "acc@16", "length@8", "truncation@16"):
        arms = found["metrics"][name]
        assert list(arms) == found["arms"]
        assert all("difference" in arms[a] for a in found["arms"][1:])
