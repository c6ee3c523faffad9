"""verl 0.9.1 ``compute_policy_loss_vanilla`` and ``agg_loss``: values and gradients.

Sides taken where we differ: an all-masked batch is 0 (verl: NaN unless it is told the
global count); a NaN under the mask has no influence in any mode (verl: NaN in the
sequence modes). A count over several ranks is an explicit `denominator`; verl refuses
to guess it when dp_size > 1, we count the tensors that we are given.
"""

import math

import pytest
import torch

from dapo_lib.objective import divisor, policy_loss


def our_reduction(case: dict, info: dict, width: int) -> tuple[dict, float]:
    """Our options for a verl mode, and a factor (verl multiplies by dp_size)."""
    ranks = info.get("dp_size", 1)
    tokens, rows = info.get("batch_num_tokens"), info.get("global_batch_size")
    l_max = info.get("loss_scale_factor") or width
    sums = {"reduction": "seq_sum_const", "denominator": rows}
    options = {
        "token-mean": {"reduction": "token_mean", "denominator": tokens},
        "token-sum": {"reduction": "token_mean", "denominator": 1},
        "seq-mean-token-sum": {**sums, "l_max": 1},
        "seq-mean-token-sum-norm": {**sums, "l_max": l_max},
        "seq-mean-token-mean": {"reduction": "seq_mean", "denominator": rows},
    }[case["loss_agg_mode"]]
    return options, ranks


def tolerance(case: dict) -> float:
    return 1e-7 if case["loss_agg_mode"] == "seq-mean-token-mean" else 1e-9


@pytest.mark.oracle("verl_policy_loss", "cases")
def test_policy_loss(case, batch, close):
    new, old, advantage, mask = batch(case["input"])
    info = case["global_batch_info"]
    options, factor = our_reduction(case, info, mask.shape[1])
    loss, sums = policy_loss(
        new,
        old,
        advantage,
        mask,
        eps_low=case["clip_ratio_low"],
        eps_high=case["clip_ratio_high"],
        dual_clip=case["clip_ratio_c"],
        **options,
    )
    if "raises" in case:  # verl will not count over ranks; we counted these tensors
        assert "required when dp_size > 1" in case["raises"]
        assert math.isfinite(loss.item())
        return
    (factor * loss).backward()
    close(factor * loss, case["loss"], tolerance(case))
    if "grad_logp" in case:  # recorded for one mode of most inputs
        close(new.grad, case["grad_logp"], tolerance(case))
    tokens = mask.sum()
    both_sides = (sums["clip_low"] + sums["clip_high"]) / tokens
    close(both_sides, case["pg_clipfrac"], 1e-7)
    close(-sums["log_ratio"] / tokens, case["ppo_kl"], 1e-7)
    # verl's "lower" is the share of the dual clip, not of the lower clip
    close(sums["clip_dual"] / tokens, case["pg_clipfrac_lower"], 1e-7)


@pytest.mark.oracle("verl_agg_loss", "cases")
def test_aggregation(case, oracle, close):
    data = oracle("verl_agg_loss")["inputs"][case["input"]]
    per_token = torch.tensor(data["loss_mat"], dtype=torch.float64)
    mask = torch.tensor(data["mask"]).bool()
    options, factor = our_reduction(case, case["kwargs"], mask.shape[1])
    shares = torch.where(mask, per_token, 0.0).sum(1) / divisor(mask, **options)
    ours = factor * shares.sum()
    if "raises" in case:
        assert "required when dp_size > 1" in case["raises"]
        assert math.isfinite(ours.item())
    elif math.isnan(case["value"]):
        assert case["input"] in ("all_empty", "nan_under_mask")
        side = mask.any() if case["input"] == "nan_under_mask" else ours == 0
        assert math.isfinite(ours.item()) and side
    else:
        close(ours, case["value"], tolerance(case))
