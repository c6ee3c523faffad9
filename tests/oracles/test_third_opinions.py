"""OpenRLHF 0.11.2 ``PolicyLoss`` and torchrl 0.14.1 ``GRPOLoss``: a third and a fourth.

Sides taken where we differ: torchrl counts fully masked rows and does not clamp the
log-ratio; its clip fraction counts padding and both signs. OpenRLHF agrees with us.
"""

import pytest
import torch

from dapo_lib.objective import clipped_surrogate, policy_loss
from dapo_lib.overlong import soft_overlong


@pytest.mark.oracle("openrlhf_loss", "policy_loss")
def test_openrlhf_loss(case, batch, close):
    new, old, advantage, mask = batch(case["input"])
    token_level = case["token_level_loss"]
    loss, sums = policy_loss(
        new,
        old,
        advantage,
        mask,
        eps_low=case["clip_eps_low"],
        eps_high=case["clip_eps_high"],
        reduction="token_mean" if token_level else "seq_mean",
        dual_clip=case["dual_clip"],
    )
    loss.backward()
    # its sequence mean adds 1e-8 to the denominators, as verl's does
    tolerance = 1e-9 if token_level else 1e-7
    close(loss, case["loss"], tolerance)
    if "grad_logp" in case:
        close(new.grad, case["grad_logp"], tolerance)
    tokens = mask.sum()
    close((sums["clip_low"] + sums["clip_high"]) / tokens, case["clip_ratio"], 1e-9)


@pytest.mark.oracle("openrlhf_loss", "overlong")
def test_openrlhf_overlong(case, close):
    ours = soft_overlong(
        torch.tensor([case["length"]]),
        l_max=case["max_new_tokens"],
        l_cache=case["overlong_buffer_len"],
    )
    close(ours, [case["penalty"]], 1e-9)


@pytest.mark.oracle("torchrl_grpo", "cases")
def test_torchrl_loss(case, batch, close):
    new, old, advantage, mask = batch(case["input"])
    per_token = -clipped_surrogate((new - old).exp(), advantage, 0.2, 0.28)
    where = mask.bool()
    theirs = torch.tensor(case["per_token_loss"], dtype=torch.float64)
    close(per_token[where], theirs[where], 1e-9)
    if case["input"] == "edges_pos_and_neg_adv":  # the unclamped ratio, as above
        return
    loss, _ = policy_loss(
        new, old, advantage, mask, reduction="seq_mean", denominator=len(mask)
    )
    close(loss, case["prompt_mean"], 1e-9)
