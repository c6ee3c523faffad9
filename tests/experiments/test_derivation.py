"""Figures over seeds: rates never see test, tables are read where they say they are."""

import json

import numpy as np
import pytest
import torch

from dapo_lib.candidate import recipe
from dapo_lib.data.embedded import load_embedded
from dapo_lib.errors import BadInput
from dapo_lib.experiments import derivation, published
from dapo_lib.experiments.derivation import METRICS, ablation, choose_lr, run_derivation


@pytest.fixture(scope="module")
def data():
    whole = load_embedded()
    return whole.train[:250], whole.test[:100]


def small(data, **options):
    sizes = {"steps": 30, "prompts_per_step": 2, "seeds": 3, "lr": 0.05}
    return run_derivation(*data, **(sizes | options))


def test_result_is_json_with_interval_ceiling_and_cost(data) -> None:
    result = small(data)
    body = json.loads(json.dumps(result.as_dict()))
    for name in METRICS:
        found = body["metrics"]["test"][name]
        assert found["low"] <= found["mean"] <= found["high"]
        assert np.mean(body["per_seed"][name]) == pytest.approx(found["mean"])
    assert body["metrics"]["ceiling"] >= body["metrics"]["test"]["greedy"]["mean"]
    assert 0 < body["metrics"]["leak_only"] < 1
    # 30 steps of 2 groups of 4, and what the filter threw away
    assert min(body["per_seed"]["rollouts"]) >= 30 * 2 * 4
    assert body["tokens"] > 10 * body["rollouts"]


def test_learning_lifts_expected_accuracy_of_every_seed(data) -> None:
    run = small(data).run
    assert (run.test.expected_accuracy > run.untrained.expected_accuracy).all()


def test_rates_are_chosen_without_the_test_problems(data, monkeypatch) -> None:
    seen = []
    monkeypatch.setattr(
        derivation,
        "run",
        lambda bench, *rest: seen.append(bench) or recipe.run(bench, *rest),
    )
    _, frame = choose_lr(data[0], prompts_per_step=1, grid=(0.01, 0.02), seeds=[7])
    asked = {
        q for bench in seen for q in (*bench.train.questions, *bench.test.questions)
    }
    assert asked <= {p.question for p in data[0]}
    assert not set(seen[0].train.questions) & set(seen[0].test.questions)
    assert frame["lr"].tolist() == [0.01, 0.02]


def test_no_rate_within_the_budget_is_an_error(data, monkeypatch) -> None:
    monkeypatch.setattr(derivation, "KL_BUDGET", {1: 1e-9})
    with pytest.raises(BadInput, match="grid"):
        choose_lr(data[0], prompts_per_step=1, grid=(0.1,), seeds=[7])


def test_both_readings_of_an_arm(data) -> None:
    options = {"steps": 20, "prompts_per_step": 2, "seeds": 2, "lr": 0.05}
    frame = ablation(*data, arms=["dapo", "grpo"], **options)
    wide = frame.pivot_table(index=["arm", "at", "seed"], columns="metric")["value"]
    assert (wide.loc["grpo", "updates"]["rollouts"] == 20 * 2 * 4).all()
    budget = frame.attrs["rollout_budget"]
    assert wide.loc["grpo", "rollouts"]["rollouts"].tolist() == pytest.approx(
        [budget] * 2
    )
    assert (
        wide.loc["grpo", "rollouts"]["updates"] > 20
    ).all()  # it samples less a step
    summary = derivation.table(frame)
    assert set(summary["arm"]) == {"dapo", "grpo"} and (summary["n"] == 2).all()


def test_a_curve_is_read_between_its_points() -> None:
    rollouts = torch.tensor([[0.0, 0.0], [10.0, 20.0], [20.0, 40.0]])
    values = torch.tensor([[0.0, 0.0], [1.0, 1.0], [3.0, 3.0]])
    assert derivation._read(rollouts, values, 15).tolist() == [2.0, 0.75]
    assert derivation._read(rollouts, values, 30).tolist() == [3.0, 2.0]  # ended: last


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "dpo"}, "algorithm"),
        ({"mix": "easy"}, "mix"),
        ({"seeds": 0}, "seeds"),
    ],
)
def test_bad_input(data, options, message) -> None:
    with pytest.raises(BadInput, match=message):
        small(data, **options)


def test_published_ablation_says_what_the_book_says() -> None:
    """Directions with intervals, from the committed run over 20 seeds."""
    frame = published.load("candidate_ablation")
    rows = derivation.table(frame).set_index(["arm", "at"])
    assert (rows["n"] == 20).all()
    dapo = rows.loc[("dapo", "updates")]
    for arm in ("grpo", "dr_grpo", "without_dynamic"):
        assert rows.loc[(arm, "updates"), "high"] < dapo["low"]
    # what dynamic sampling gains an update, it pays for in rollouts
    assert rows.loc[("without_dynamic", "rollouts"), "low"] > dapo["high"]


@pytest.mark.data
def test_figures_on_gsm8k(gsm8k) -> None:
    """A quarter of the seeds and steps; the full ones are in published/."""
    result = run_derivation(gsm8k.train, gsm8k.test, steps=150, seeds=5, lr=0.1)
    metrics = result.metrics()
    assert metrics["test"]["greedy"]["low"] > 0.85
    assert metrics["test"]["expected_accuracy"]["low"] > 0.75
    assert metrics["ceiling"] > metrics["test"]["greedy"]["high"]
    assert 0.4 < metrics["leak_only"] < 0.6
