"""verl 0.9.1 and TRL 1.16.0 group advantages.

Sides taken where we differ: a constant group and a group of one are exactly 0 (verl:
the raw reward for one, rounding noise divided by eps for a constant group); statistics
are float64 whatever the dtype of the rewards (a float32 mean of a nearly constant group
is off by its own rounding).
"""

import warnings

import pytest
import torch

from dapo_lib.advantage import group_advantages

CONSTANT = ("zero_variance_0.1_x3", "zero_variance_0.1_x8")


def rewards_of(data: dict, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    names = sorted(set(data["group"]))
    ids = torch.tensor([names.index(g) for g in data["group"]])
    return torch.tensor(data["reward"], dtype=dtype), ids


def ours(rewards, ids, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the group of one
        return group_advantages(rewards, ids, **options)


@pytest.mark.oracle("verl_group_advantage", "cases")
def test_verl(case, oracle, close):
    data = oracle("verl_group_advantage")["inputs"][case["input"]]
    dtype = getattr(torch, case["dtype"].removeprefix("torch."))
    rewards, ids = rewards_of(data, dtype)
    options = {"scale": "group" if case.get("norm_adv_by_std_in_grpo") else "none"}
    if case["estimator"] == "rloo":
        options["baseline"] = "leave_one_out"
    advantage = ours(rewards, ids, **options)
    theirs = torch.tensor(case["advantage"], dtype=torch.float64)
    exact = case["estimator"] != "grpo_vectorized" and dtype is torch.float64
    tolerance = 1e-9 if exact else 1e-4
    _, inverse, size = torch.unique(ids, return_inverse=True, return_counts=True)
    alone = size[inverse] == 1
    low, high = (
        torch.stack([f(rewards[ids == i]) for i in ids]) for f in (torch.min, torch.max)
    )
    zero = alone | (low == high)
    assert (advantage[zero] == 0).all()
    if case["input"] == "tiny_variance" and not exact:
        # float32 mean: the three equal rewards get 0, and the sum is not 0
        assert abs(advantage.sum().item()) < 1e-9 < theirs.sum().item()
        return
    close(advantage[~zero], theirs[~zero], tolerance)
    # what verl gives a group of one: its reward, over 1 + eps if normalised
    close(theirs[alone], rewards[alone].double(), 2e-6 if exact else 1e-4)
    assert theirs[zero & ~alone].abs().max().item() < 0.02 if zero.any() else True


@pytest.mark.oracle("trl_group_advantage", "cases")
def test_trl(case, oracle, close):
    data = oracle("verl_group_advantage")["inputs"][case["input"]]
    rewards, _ = rewards_of(data, torch.float32)
    ids = torch.arange(len(rewards)) // case["num_generations"]
    advantage = ours(rewards, ids, eps=1e-4, scale=case["scale_rewards"])
    theirs = torch.tensor(case["advantage"], dtype=torch.float64)
    if case["input"] in CONSTANT:
        assert (advantage == 0).all() and theirs.abs().max().item() < 1e-4
    elif case["input"] == "tiny_variance":
        assert abs(advantage.sum().item()) < 1e-9 < theirs.sum().item()
    else:
        close(advantage, theirs, 1e-6)


@pytest.mark.oracle("trl_group_advantage", "cases", mask_truncated_completions=True)
def test_trl_keeps_truncated_rows_in_the_baseline(case, oracle, close):
    data = oracle("verl_group_advantage")["inputs"][case["input"]]
    rewards, ids = rewards_of(data, torch.float32)
    cut = torch.tensor(case["truncated"])
    close(ours(rewards, ids, eps=1e-4), case["advantage"], 1e-6)  # "include"
    excluded = ours(rewards, ids, eps=1e-4, include=~cut)
    assert (excluded[cut] == 0).all() and excluded[0] != case["advantage"][0]
