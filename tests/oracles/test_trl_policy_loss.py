"""TRL 1.16.0 ``GRPOTrainer._compute_loss``: values and gradients.

Sides taken where we differ: TRL's sequence modes count fully masked rows, ours leave
them out (TRL's number follows from an explicit `denominator`); TRL does not clamp the
log-ratio, we clamp it to +-20 as verl does; TRL divides by its accumulation windows,
which is an explicit `denominator` for us; TRL's `delta` bounds the ratio, which for
delta > 1 + eps_high is the dual clip.
"""

import pytest
import torch

from dapo_lib.kl import k3
from dapo_lib.objective import count_denominator, policy_loss

REDUCTION = {
    "dapo": "token_mean",
    "bnpo": "token_mean",
    "grpo": "seq_mean",
    "dr_grpo": "seq_sum_const",
}

REFERENCE = 0.3  # log-probabilities of the reference lie this far below the old ones


def their_denominator(case: dict, mask: torch.Tensor) -> float:
    windows = case["gradient_accumulation_steps"]
    if case["loss_type"] == "dapo":
        share = windows / case["steps_per_generation"]
        return case["num_items_in_batch"] * share
    return windows * {"bnpo": mask.sum().item()}.get(case["loss_type"], len(mask))


def their_loss(case, new, old, advantage, mask):
    loss, sums = policy_loss(
        new,
        old,
        advantage,
        mask,
        eps_low=case["epsilon"],
        eps_high=case["epsilon_high"],
        reduction=REDUCTION[case["loss_type"]],
        denominator=their_denominator(case, mask),
        l_max=case["max_completion_length"],
        dual_clip=case.get("delta"),
    )
    if case["beta"]:
        term = k3(new, old - REFERENCE)
        if case.get("use_bias_correction_kl", True):
            term = term * (new - old).exp()
        count = their_denominator(case, mask)
        loss = loss + case["beta"] * (term * mask).sum() / count
    return loss, sums


@pytest.mark.oracle("trl_policy_loss", "cases")
def test_policy_loss(case, batch, close):
    new, old, advantage, mask = batch(case["input"])
    loss, sums = their_loss(case, new, old, advantage, mask)
    loss.backward()
    edges = case["input"] == "edges_pos_and_neg_adv"
    unclamped = edges and ("delta" not in case or case["beta"])
    if unclamped:  # one token with a log-ratio beyond 20
        beyond = (new - old).detach().abs() > 20
        assert beyond.any() and case["loss"] > 1e8 and loss.item() < case["loss"]
        theirs = torch.tensor(case["grad_logp"], dtype=torch.float64)
        close(new.grad[~beyond], theirs[~beyond], 1e-9)
    else:
        close(loss, case["loss"], 1e-9)
        close(new.grad, case["grad_logp"], 1e-9)
    tokens = mask.sum()
    close(sums["clip_low"] / tokens, case["clip_low_mean"], 1e-9)
    close(sums["clip_high"] / tokens, case["clip_high_mean"], 1e-9)
    both = sums["clip_low"] + sums["clip_high"]
    close(both / tokens, case["clip_region_mean"], 1e-9)


@pytest.mark.oracle("disagreements", "items", kind="policy_loss")
def test_sides_taken_between_the_two(case, batch, close):
    """Where verl and TRL differ in a loss, which number is ours."""
    new, old, advantage, mask = batch(case["input"])
    reduction = REDUCTION[case["trl_loss_type"]]
    loss, _ = policy_loss(
        new, old, advantage, mask, reduction=reduction, l_max=mask.shape[1]
    )
    assert abs(case["trl"] - case["verl"]) > 1e-3
    if case["input"] == "one_row_fully_masked":
        close(loss, case["verl"], 1e-7)  # the row leaves the count
        rows = count_denominator(mask, "seq_mean") / mask.sum(1).clamp(min=1)
        assert rows.unique().tolist() == [len(mask) - 1]
    else:  # clamped as in verl, without the dual clip that it has by default: neither
        assert case["input"] == "edges_pos_and_neg_adv"
        bounded, _ = policy_loss(
            new,
            old,
            advantage,
            mask,
            reduction=reduction,
            l_max=mask.shape[1],
            dual_clip=10.0,
        )
        close(bounded, case["verl"], 1e-7)
        assert case["verl"] < loss.item() < case["trl"]
