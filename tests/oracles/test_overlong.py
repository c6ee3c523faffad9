"""The overlong penalty of verl 0.9.1 and TRL 1.16.0 at every boundary.

Side taken: Eq 13 bounded by -1, as TRL and OpenRLHF have it; verl goes on below -1
past l_max. A cache of 0 is a step (TRL); verl refuses it.
"""

import pytest
import torch

from dapo_lib.overlong import soft_overlong


@pytest.mark.oracle("trl_overlong", "cases")
def test_trl(case):
    ours = soft_overlong(
        torch.tensor(case["length"]),
        l_max=case["max_completion_len"],
        l_cache=case["soft_punish_cache"],
    )
    assert ours.item() == case["punishment"]


@pytest.mark.oracle("verl_overlong", "cases")
def test_verl(case):
    penalty = soft_overlong(
        torch.tensor(case["length"]),
        l_max=case["max_resp_len"],
        l_cache=case["buffer_len"],
    ).item()
    factor, base = case["penalty_factor"], case["base_score"]
    total = base + factor * penalty
    if case["length"] <= case["max_resp_len"]:
        assert factor * penalty == pytest.approx(case["overlong_reward"], abs=1e-6)
        assert total == pytest.approx(case["total_reward_legacy"], abs=1e-6)
        assert total == pytest.approx(case["reward_loop"]["total"], abs=1e-6)
    else:
        assert penalty == -1 and case["overlong_reward"] < -factor
    assert (penalty < 0) == case["overlong"]


@pytest.mark.oracle("verl_overlong", "constructor_errors")
def test_verl_refuses(case):
    options = {"l_max": case["Lmax"], "l_cache": case["buf"]}
    if case["buf"] > case["Lmax"]:
        with pytest.raises(ValueError, match="l_cache"):
            soft_overlong(torch.tensor([0]), **options)
    else:
        lengths = torch.tensor([case["Lmax"], case["Lmax"] + 1])
        assert soft_overlong(lengths, **options).tolist() == [0, -1]
