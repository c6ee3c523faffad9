"""Starved, blown up, cut or empty: the run says what happened, and ends or resumes."""

from __future__ import annotations

import json

import pytest
import torch

from dapo_lib import train as loop
from dapo_lib.cli import progress
from dapo_lib.errors import Diverged, Starved
from dapo_lib.experiments.arms import ARMS, changed
from dapo_lib.experiments.language import LanguageRun, session
from dapo_lib.lm.policy import LMPolicy
from dapo_lib.lm.tasks.task import TokenTask
from dapo_lib.rollout import Rollout
from dapo_lib.train import Schedule

SMALL = Schedule(
    rollouts=3, prompts_per_rollout=4, group_size=4, minibatches=2, l_max=12
)
DAPO = ARMS["dapo"]


def run(folder, algorithm=DAPO, schedule=SMALL):
    """The records and the session of a run, resumed if it had begun."""
    arm = LanguageRun(algorithm=algorithm, schedule=schedule, evaluate_every=0)
    one = session(arm, 0, folder)
    done = one.prepare(resume=True)
    done = [*done, *one.steps(done)]
    return done, one


def weights(one) -> list[torch.Tensor]:
    return [v.clone() for v in one.run.policy.state_dict().values()]


def unchanged(one, folder) -> bool:
    """Whether the weights are those of a run that has not begun."""
    fresh = session(LanguageRun(algorithm=DAPO, schedule=SMALL), 0, folder / "fresh")
    pairs = zip(weights(one), weights(fresh), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def verdicts(monkeypatch, value: int) -> None:
    """Every response right, or every one wrong."""

    def grade(self, rollout: Rollout) -> Rollout:
        correct = torch.full((len(rollout),), value)
        return rollout.graded(correct, 2.0 * correct.double() - 1.0)

    monkeypatch.setattr(TokenTask, "grade", grade)


def from_call(monkeypatch, owner, name: str, call: int, change) -> None:
    """Change what a function gives from its `call`-th call on."""
    inner, calls = getattr(owner, name), iter(range(1, 10**6))

    def wrapped(*arguments, **options):
        out = inner(*arguments, **options)
        return change(out) if next(calls) >= call else out

    monkeypatch.setattr(owner, name, wrapped)


@pytest.mark.parametrize(
    ("value", "word"),
    [(0, "0 were all right, 40 all wrong"), (1, "40 were all right, 0 all wrong")],
    ids=["too hard", "solved"],
)
@pytest.mark.parametrize("policy", ["partial", "skip"])
def test_no_group_with_a_signal(tmp_path, monkeypatch, value, word, policy):
    verdicts(monkeypatch, value)
    rows, one = run(tmp_path, changed(DAPO, on_exhausted=policy))
    assert len(rows) == SMALL.rollouts and unchanged(one, tmp_path)
    for row in rows:
        assert word in row["note"] and "raise group_size" in row["note"]
        assert row["kept"] == 0 and row["exhausted"] == 1
    assert one.run.state.updates == 0 and one.run.state.prompts == 40 * 3


def test_an_error_by_policy_says_what_to_do_and_leaves_a_resumable_run(
    tmp_path, monkeypatch
):
    algorithm = changed(DAPO, on_exhausted="error")
    _, whole = run(tmp_path / "whole", algorithm)
    with monkeypatch.context() as patch:
        wrong = {"correct": 0, "reward": -1.0}

        def hard(rollout: Rollout) -> Rollout:
            shape = (len(rollout),)
            return rollout.graded(
                torch.full(shape, wrong["correct"]), torch.full(shape, wrong["reward"])
            )

        from_call(patch, TokenTask, "grade", 4, hard)
        with pytest.raises(Starved, match=r"0 of 4 groups .* use easier prompts"):
            run(tmp_path / "cut", algorithm)
    _, again = run(tmp_path / "cut", algorithm)
    pairs = zip(weights(whole), weights(again), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_every_response_cut_and_filtered(tmp_path, monkeypatch):
    def cut(rollout: Rollout) -> Rollout:
        every = torch.ones_like(rollout.truncated)
        return Rollout(**rollout.tensors() | {"truncated": every})

    from_call(monkeypatch, LMPolicy, "sample", 1, cut)
    algorithm = changed(DAPO, overlong="filter", dynamic_sampling=False)
    with pytest.warns(UserWarning, match="every response is masked"):
        rows, one = run(tmp_path, algorithm)
    for row in rows:
        assert "raise l_max" in row["note"] and row["truncated"] == 1
    assert one.run.state.updates == 0 and unchanged(one, tmp_path)


def bad_gradient(log_prob: torch.Tensor) -> torch.Tensor:
    log_prob.register_hook(lambda gradient: gradient * float("nan"))
    return log_prob


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: x * float("nan"), "log_prob: got the value nan"),
        (lambda x: x * float("inf"), "log_prob: got the value -inf"),
        (bad_gradient, "gradient norm is nan"),
    ],
    ids=["nan", "inf", "gradient"],
)
def test_numbers_that_blow_up(tmp_path, monkeypatch, change, said):
    _, whole = run(tmp_path / "whole")
    with monkeypatch.context() as patch:
        from_call(patch, LMPolicy, "log_prob", 4, change)  # the second rollout
        with pytest.raises(Diverged, match=rf"{said}.* lower lr=0\.0001 or eps_high"):
            run(tmp_path / "cut")
    lines = (tmp_path / "cut" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["rollout"] for line in lines] == [1]
    _, again = run(tmp_path / "cut")  # a passing fault: the same options go on
    pairs = zip(weights(whole), weights(again), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_diverging_touches_no_weight(tmp_path, monkeypatch):
    from_call(monkeypatch, LMPolicy, "log_prob", 1, bad_gradient)
    arm = LanguageRun(algorithm=DAPO, schedule=SMALL, evaluate_every=0)
    one = session(arm, 0, tmp_path)
    with pytest.raises(Diverged):
        next(one.steps(one.prepare(resume=True)))
    assert unchanged(one, tmp_path) and one.run.state.updates == 0


@pytest.mark.parametrize("shift", [-1e4, 1e4], ids=["exploding", "vanishing"])
def test_ratios_without_bound(tmp_path, monkeypatch, shift):
    def other(rollout: Rollout) -> Rollout:
        moved = rollout.log_prob_old + shift
        return Rollout(**rollout.tensors() | {"log_prob_old": moved})

    if shift > 0:  # a probability above 1 is refused, so let the new ones vanish
        from_call(monkeypatch, LMPolicy, "log_prob", 1, lambda x: x - shift)
    else:
        from_call(monkeypatch, LMPolicy, "sample", 1, other)
    rows, one = run(tmp_path)
    assert len(rows) == 3 and all(w.isfinite().all() for w in weights(one))


@pytest.mark.parametrize("every", [False, True], ids=["one a group", "all"])
def test_empty_responses(tmp_path, monkeypatch, every):
    def empty(rollout: Rollout) -> Rollout:
        rows = torch.ones(len(rollout), dtype=torch.bool)
        if not every:
            rows = rows.view(-1, SMALL.group_size)
            rows[:, 1:] = False
            rows = rows.flatten()
        length = rollout.length.masked_fill(rows, 0)
        mask = rollout.mask & ~rows[:, None]
        return Rollout(**rollout.tensors() | {"length": length, "mask": mask})

    from_call(monkeypatch, LMPolicy, "sample", 1, empty)
    rows, one = run(tmp_path)
    assert len(rows) == 3 and all(w.isfinite().all() for w in weights(one))
    assert (one.run.state.updates == 0) == every


def test_a_huge_learning_rate_ends_with_finite_weights_or_by_name(tmp_path):
    wild = SMALL.model_copy(update={"lr": 1e3, "clip_norm": None})
    rows, one = run(tmp_path, DAPO, wild)
    assert all(w.isfinite().all() for w in weights(one))
    assert "all wrong" in rows[-1]["note"]


def test_the_command_line_prints_the_note(tmp_path, monkeypatch, capsys):
    verdicts(monkeypatch, 0)
    arm = LanguageRun(algorithm=DAPO, schedule=SMALL, evaluate_every=0)
    one = session(arm, 0, tmp_path / "run")
    progress.follow(one, resume=False, tensorboard=False, total=3)
    said = capsys.readouterr().err
    assert "rollout 3: no update: of 40 groups drawn 0 were all right" in said


def test_a_note_is_there_only_where_nothing_was_updated():
    step = loop.Step(1, None, None, None, [{"loss": torch.tensor(0.0)}])
    assert step.note is None
