"""The transformer in the one loop: resume, determinism, and what a run reports."""

import math

import pytest
import torch

from dapo_lib import checkpoint
from dapo_lib.algorithm import ALGORITHMS, Algorithm
from dapo_lib.errors import BadInput
from dapo_lib.lm.model import Decoder, ModelConfig
from dapo_lib.lm.policy import LMPolicy
from dapo_lib.lm.run import DIGIT_SUM, records, run_lm, setting
from dapo_lib.lm.tasks import AllowedLetter, DigitSum
from dapo_lib.train import Schedule, train

SHORT = Schedule(rollouts=3, prompts_per_rollout=6, group_size=4, minibatches=3)


def without_time(rows):
    return [{k: v for k, v in r.items() if k != "cpu_seconds"} for r in rows]


def same(a, b):
    """Equal records, NaN equal to NaN."""
    return repr(without_time(a)) == repr(without_time(b))


def test_same_seed_twice_is_bit_equal_and_another_seed_is_not():
    runs = [
        list(run_lm(Algorithm(), SHORT, seed=s, evaluate_every=0)) for s in (4, 4, 5)
    ]
    assert same(runs[0], runs[1]) and not same(runs[0], runs[2])


def test_a_resumed_run_is_bit_equal(tmp_path):
    whole = setting(Algorithm(), SHORT, seed=1)
    wanted = list(records(Algorithm(), SHORT, whole, evaluate_every=0))
    half = setting(Algorithm(), SHORT, seed=1)
    first = next(records(Algorithm(), SHORT, half, evaluate_every=0))
    checkpoint.save(tmp_path, half.policy, half.state, half.task, config="x")
    again = setting(Algorithm(), SHORT, seed=1)
    path = checkpoint.latest(tmp_path)
    checkpoint.load(path, again.policy, again.state, again.task, config="x")
    rest = list(records(Algorithm(), SHORT, again, evaluate_every=0))
    assert same(wanted, [first, *rest])
    for a, b in zip(whole.policy.parameters(), again.policy.parameters(), strict=True):
        assert torch.equal(a, b)


def test_records_say_what_the_loop_did():
    rows = list(run_lm(ALGORITHMS["grpo"], SHORT, seed=2, evaluate_every=3))
    assert [r["rollout"] for r in rows] == [0, 1, 2, 3]
    assert [r["updates"] for r in rows] == [0, 3, 6, 9]
    assert rows[-1]["prompts"] == 18 and rows[-1]["responses"] == 24
    for r in rows[1:]:
        assert 0 <= r["train_accuracy"] <= 1 and 3 <= r["length"] <= 24
        assert len(r["clip_high_by_update"]) == 3
        assert r["clip_high_by_update"][0] == 0  # the first update is on policy
        assert math.isclose(r["all_right"] + r["all_wrong"] + _alive(r), 1)
    assert "eval_accuracy" in rows[0] and "eval_accuracy" in rows[-1]
    assert "eval_accuracy" not in rows[1]


def _alive(record):
    return 1 - record["all_right"] - record["all_wrong"]


def test_the_warm_start_guesses_and_rl_finds_the_chain():
    """Directions, not values: a third of the paper's updates, one seed."""
    schedule = DIGIT_SUM.model_copy(update={"rollouts": 6})
    *_, last = rows = list(run_lm(Algorithm(), schedule, seed=11, evaluate_every=6))
    assert rows[0]["eval_accuracy"] < 0.2 < 0.35 < last["eval_accuracy"]
    assert last["eval_truncated"] < 0.01 < rows[0]["eval_truncated"]
    assert last["eval_full_chain"] > 5 * rows[0]["eval_full_chain"]


def test_an_epoch_of_one_update_cannot_clip():
    schedule = SHORT.model_copy(update={"minibatches": 1, "rollouts": 2})
    runs = [
        list(run_lm(Algorithm(eps_high=e), schedule, seed=3, evaluate_every=0))
        for e in (0.2, 0.5)
    ]
    assert same(*runs)


def test_evaluation_leaves_the_run_alone():
    quiet = list(run_lm(Algorithm(), SHORT, seed=6, evaluate_every=0))
    watched = list(run_lm(Algorithm(), SHORT, seed=6, evaluate_every=2))[1:]
    kept = [{k: v for k, v in r.items() if not k.startswith("eval_")} for r in watched]
    assert same(quiet, kept)


def test_a_coin_flip_reward_is_about_half():
    rows = list(run_lm(Algorithm(), SHORT, seed=2, coin_flip=True, evaluate_every=0))
    mean = sum(r["train_accuracy"] for r in rows) / len(rows)
    assert 0.3 < mean < 0.7


def test_the_second_task_runs_through_the_same_loop():
    schedule = Schedule(
        rollouts=1, prompts_per_rollout=8, group_size=8, l_max=12, minibatches=2
    )
    rows = list(run_lm(Algorithm(), schedule, warm_start="allowed_letter"))
    assert 0.5 < rows[0]["eval_accuracy"] < 0.7
    assert rows[0]["eval_careful"] < 0.05 and rows[0]["eval_habit_entropy"] > 1


def test_log_prob_of_a_rollout_is_what_was_recorded():
    still = SHORT.model_copy(update={"lr": 1e-30})
    run = setting(Algorithm(), still, seed=1)
    step = next(train(Algorithm(), still, *run))
    again = run.policy.log_prob(step.batch).detach()
    assert float((again - step.batch.log_prob_old).abs().max()) <= 5e-6


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: ModelConfig(heads=5).validated(), "heads: got 5"),
        (lambda: Decoder(ModelConfig(width=12, heads=4)), "even width"),
        (lambda: LMPolicy(Decoder(ModelConfig()), AllowedLetter()), "vocabulary"),
        (lambda: LMPolicy(Decoder(ModelConfig()), DigitSum(), temperature=0), "temp"),
        (lambda: setting(Algorithm(), Schedule(l_max=2)), "l_max: got 2"),
        (lambda: setting(Algorithm(), SHORT, warm_start="hot"), "warm_start"),
    ],
)
def test_what_cannot_work_is_refused(build, said):
    with pytest.raises(BadInput, match=said):
        build()


def test_a_group_of_one_is_refused():
    with pytest.raises(ValueError, match="group_size"):
        Schedule(group_size=1)
