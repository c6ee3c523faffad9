"""Entropy and log-probabilities at a temperature: verl 0.9.1 and TRL 1.16.0."""

import pytest
import torch

from dapo_lib.metrics import entropy, token_log_prob
from dapo_lib.objective import divisor


def test_verl_at_temperature_1(oracle, close):
    data = oracle("verl_entropy_logprob")
    logits = torch.tensor(data["logits"], dtype=torch.float64)
    labels = torch.tensor(data["labels"])
    close(entropy(logits), data["entropy"], 1e-9)
    close(token_log_prob(logits, labels), data["logprob"], 1e-9)


@pytest.mark.oracle("verl_entropy_logprob", "temperature_cases")
def test_verl_at_other_temperatures(case, oracle, close):
    data = oracle("verl_entropy_logprob")
    logits = torch.tensor(data["logits"], dtype=torch.float64)
    labels = torch.tensor(data["labels"])
    t = case["temperature"]
    close(entropy(logits, t), case["entropy"], 1e-9)
    close(token_log_prob(logits, labels, t), case["logprob"], 1e-9)


@pytest.mark.oracle("verl_entropy_logprob", "entropy_loss")
def test_verl_entropy_reduced(case, oracle, close):
    logits = torch.tensor(oracle("verl_entropy_logprob")["logits"], dtype=torch.float64)
    mask = torch.tensor(case["mask"]).bool()
    per_token = entropy(logits).view(mask.shape)
    options = {
        "token-mean": {"reduction": "token_mean"},
        "token-sum": {"reduction": "token_mean", "denominator": 1},
        "seq-mean-token-sum": {"reduction": "seq_sum_const", "l_max": 1},
        "seq-mean-token-sum-norm": {
            "reduction": "seq_sum_const",
            "l_max": mask.shape[1],
        },
        "seq-mean-token-mean": {"reduction": "seq_mean"},
    }[case["loss_agg_mode"]]
    shares = (per_token * mask).sum(1) / divisor(mask, **options)
    close(shares.sum(), case["value"], 1e-7)


@pytest.mark.oracle("trl_logp_entropy", "cases")
def test_trl(case, close):
    logits, mask = torch.tensor(case["logits"]), torch.tensor(case["mask"]).bool()
    labels, t = torch.tensor(case["labels"]), case["temperature"]
    log_prob = token_log_prob(logits, labels, t)
    assert log_prob.dtype is torch.float32
    theirs = torch.tensor(case["logp"], dtype=torch.float64)
    close(log_prob[mask], theirs[mask], 5e-6)
    assert (theirs[~mask] == 0).all()  # they zero masked labels, we leave them
    theirs = torch.tensor(case["entropy"], dtype=torch.float64)
    close(entropy(logits, t)[mask], theirs[mask], 5e-6)
