"""A sampler apart: without lag and rounding it is the policy; with them, it is late."""

from __future__ import annotations

import pytest
import torch

from dapo_lib.errors import BadInput
from dapo_lib.experiments.arms import DAPO
from dapo_lib.lm.detached import DetachedPolicy, rounded
from dapo_lib.lm.run import DIGIT_SUM, setting
from dapo_lib.train import Schedule, train

SHORT = Schedule(
    **{**DIGIT_SUM.model_dump(), "rollouts": 3, "prompts_per_rollout": 8}
    | {"group_size": 8, "minibatches": 4, "lr": 1e-3}
)
PLAIN = DAPO.model_copy(update={"dynamic_sampling": False})


def trained(**apart):
    run = setting(PLAIN, SHORT, seed=3)
    policy = DetachedPolicy(run.policy, **apart) if apart else run.policy
    steps = list(train(PLAIN, SHORT, policy, run.task, run.state))
    return steps, run.policy.state_dict()


def test_without_lag_and_rounding_it_is_the_same_run() -> None:
    (_, here), (_, apart) = trained(), trained(lag=0)
    assert all(torch.equal(here[name], apart[name]) for name in here)


def test_the_sampler_has_the_weights_sent_lag_rollouts_ago() -> None:
    run = setting(PLAIN, SHORT, seed=3)
    policy = DetachedPolicy(run.policy, lag=2)
    sent = []
    for i in range(5):
        with torch.no_grad():
            next(iter(run.policy.parameters())).fill_(float(i))
        policy.refresh()
        sent.append(next(iter(policy.sampler.parameters()))[0, 0].item())
    assert sent == [0, 0, 0, 1, 2]


def test_old_log_probs_of_the_sampler_show_the_lag_and_the_trainer_s_hide_it() -> None:
    def first_ratios(old):
        steps, _ = trained(lag=2, old=old)
        return [abs(float(s.updates[0]["log_ratio"])) for s in steps]

    seen, hidden = first_ratios("sampler"), first_ratios("trainer")
    assert seen[0] == pytest.approx(0, abs=1e-3) and seen[2] > 0.1
    assert hidden == pytest.approx([0, 0, 0], abs=1e-3)


def test_rounding_is_to_the_nearest_level_of_each_row() -> None:
    weight = torch.randn(5, 33, generator=torch.Generator().manual_seed(0))
    for weights, top in (("int8", 127), ("int4", 7)):
        got = rounded(weight, weights)
        for row, mine in zip(weight, got, strict=True):
            scale = row.abs().max() / top
            levels = torch.arange(-top, top + 1) * scale
            near = (row[:, None] - levels).abs().argmin(1)
            assert torch.allclose(mine, levels[near], atol=1e-6)
    assert torch.equal(rounded(weight, "float32"), weight)
    assert (rounded(weight, "bfloat16") - weight).abs().max() <= 2**-8 * 4
    assert torch.equal(rounded(torch.zeros(2, 3), "int4"), torch.zeros(2, 3))


@pytest.mark.parametrize(
    ("apart", "says"),
    [
        ({"lag": -1}, "lag: got -1"),
        ({"weights": "int3"}, "weights: got 'int3'"),
        ({"old": "both"}, "old: got 'both'"),
    ],
)
def test_what_cannot_be_is_refused(apart, says) -> None:
    run = setting(PLAIN, SHORT, seed=3)
    with pytest.raises(BadInput, match=says):
        DetachedPolicy(run.policy, **apart)
