"""policy_loss: every bad input named, and what is not an error."""

import math
import time

import pytest
import torch

from dapo_lib.objective import count_denominator, divisor, policy_loss

OLD = torch.full((2, 3), -1.0)
GOOD = {
    "log_prob": OLD - 0.1,
    "log_prob_old": OLD,
    "advantage": torch.tensor([1.0, -1.0]),
    "mask": torch.tensor([[1, 1, 0], [1, 0, 0]]),
}


def changed(name, place, value):
    values = GOOD[name].clone().float()
    values[place] = value
    return {name: values}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log_prob": torch.ones(3)}, r"log_prob: got shape \(3,\)"),
        ({"log_prob": torch.ones(0, 3)}, r"log_prob: got shape \(0, 3\).*B >= 1"),
        ({"log_prob_old": torch.ones(2, 2)}, r"log_prob_old: got shape \(2, 2\)"),
        (
            {"mask": torch.ones(2, 4)},
            r"mask: got shape \(2, 4\), expected shape \(2, 3",
        ),
        ({"advantage": torch.ones(3)}, r"advantage: got shape \(3,\)"),
        ({"advantage": torch.ones(1, 3)}, r"advantage: got shape \(1, 3\)"),
        (changed("log_prob", (0, 0), 0.5), "log_prob: got the value 0.5"),
        (changed("log_prob", (0, 1), math.nan), "log_prob: got the value nan"),
        (changed("log_prob", (0, 1), -math.inf), "log_prob: got the value -inf"),
        (changed("log_prob_old", (1, 0), 2.0), "log_prob_old: got the value 2.0"),
        (
            changed("log_prob_old", (1, 0), -math.inf),
            "log_prob_old: got the value -inf",
        ),
        (changed("mask", (0, 0), 0.5), "mask: got the value 0.5"),
        (changed("mask", (0, 0), 2), "mask: got the value 2.0"),
        (changed("mask", (0, 0), math.nan), "mask: got the value nan"),
        (changed("advantage", 0, math.nan), "advantage: got NaN or inf"),
        (changed("advantage", 1, math.inf), "advantage: got NaN or inf"),
        ({"eps_low": -0.1}, "eps_low: got -0.1"),
        ({"eps_low": 1.5}, "eps_low: got 1.5"),
        ({"eps_high": -0.1}, "eps_high: got -0.1"),
        ({"eps_high": None}, "eps_high: got None"),
        ({"eps_high": math.nan}, "eps_high: got nan"),
        ({"dual_clip": 1.0}, "dual_clip: got 1.0, expected None or a number > 1"),
        ({"dual_clip": 0}, "dual_clip: got 0"),
        ({"reduction": "mean"}, "reduction: got 'mean'"),
        ({"reduction": "group_token_mean"}, "group_ids: got None"),
        ({"reduction": "seq_sum_const"}, "l_max: got None"),
        ({"reduction": "seq_sum_const", "l_max": 0}, "l_max: got 0"),
        ({"group_ids": torch.ones(3)}, r"group_ids: got \(3,\)"),
        ({"lanes": torch.ones(3)}, r"lanes: got \(3,\)"),
        ({"denominator": -1}, "denominator: got -1"),
        ({"denominator": math.nan}, "denominator: got nan"),
        ({"denominator": torch.ones(3)}, r"denominator: got \(3,\)"),
    ],
)
def test_bad_input_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        policy_loss(**(GOOD | change))


def test_a_non_finite_advantage_is_refused_on_masked_out_rows_too():
    """A statistic over nothing gave it. A finite one there has no influence."""
    mask = torch.tensor([[1, 1, 1], [0, 0, 0]])
    with pytest.raises(ValueError, match="advantage"):
        policy_loss(**(GOOD | {"mask": mask} | changed("advantage", 1, math.nan)))
    new = GOOD["log_prob"].clone().requires_grad_()
    loss, _ = policy_loss(**(GOOD | {"mask": mask, "log_prob": new}))
    alone, _ = policy_loss(*(v[:1] for v in (GOOD | {"mask": mask}).values()))
    loss.backward()
    assert loss.item() == alone.item() and (new.grad[1] == 0).all()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 3.0])
def test_masked_values_may_be_anything(value):
    plain, _ = policy_loss(**GOOD)
    change = {n: v.masked_fill(GOOD["mask"] == 0, value) for n, v in GOOD.items()
              if n.startswith("log")}  # fmt: skip
    new = change["log_prob"].requires_grad_()
    loss, sums = policy_loss(**(GOOD | change))
    loss.backward()
    assert loss.item() == plain.item()
    assert new.grad.isfinite().all() and (new.grad[GOOD["mask"] == 0] == 0).all()
    assert all(v.isfinite() for v in sums.values())


def test_a_rounding_error_above_zero_is_not_an_error():
    loss, _ = policy_loss(**(GOOD | changed("log_prob", (0, 0), 1e-6)))
    assert loss.isfinite()


def test_mask_may_be_bool_integer_or_float():
    losses = [
        policy_loss(**(GOOD | {"mask": GOOD["mask"].to(kind)})).loss.item()
        for kind in (torch.bool, torch.int32, torch.float64)
    ]
    assert len(set(losses)) == 1


def test_gradient_flows_into_log_prob_alone():
    tensors = {
        n: GOOD[n].clone().requires_grad_() for n in ("log_prob", "log_prob_old")
    }
    advantage = GOOD["advantage"].clone().requires_grad_()
    policy_loss(**(GOOD | tensors | {"advantage": advantage})).loss.backward()
    assert tensors["log_prob"].grad is not None
    assert tensors["log_prob_old"].grad is None and advantage.grad is None


def test_low_precision_is_widened():
    low = {n: GOOD[n].bfloat16() for n in ("log_prob", "log_prob_old")}
    assert policy_loss(**(GOOD | low)).loss.dtype is torch.float32


def test_count_denominator_has_no_micro_mean():
    with pytest.raises(ValueError, match="reduction: got 'micro_token_mean'"):
        count_denominator(GOOD["mask"], "micro_token_mean")


def test_divisors_of_a_batch_are_float64_and_at_least_one():
    ours = divisor(torch.zeros(2, 3).bool(), "token_mean")
    assert ours.tolist() == [1, 1] and ours.dtype is torch.float64


def test_a_loss_costs_little_beyond_its_own_arithmetic():
    """Against one exp-and-sum of the same tensors: overhead must stay small."""
    g = torch.Generator().manual_seed(0)
    old = -torch.rand(640, 60, generator=g, dtype=torch.float64)
    mask = torch.arange(60)[None] < torch.randint(1, 60, (640, 1), generator=g)
    weight = torch.randn(640, generator=g, dtype=torch.float64)
    count = count_denominator(mask, "token_mean")

    def seconds(work, repeats=20):
        best = math.inf
        for _ in range(5):
            begin = time.process_time()
            for _ in range(repeats):
                work()
            best = min(best, time.process_time() - begin)
        return best / repeats

    new = (old - 0.1).requires_grad_()
    ours = seconds(lambda: policy_loss(new, old, weight, mask, denominator=count))
    floor = seconds(
        lambda: torch.where(mask, new - old, 0.0).clamp(-20, 20).exp().sum()
    )
    assert ours < 25 * floor
