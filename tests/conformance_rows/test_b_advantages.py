"""Rows B: advantages."""

import pytest
import torch

from dapo_lib.advantage import group_advantages
from dapo_lib.algorithm import ALGORITHMS
from dapo_lib.objective import policy_loss
from dapo_lib.overlong import overlong_mask
from dapo_lib.rollout import rule_reward
from dapo_lib.sampling import DynamicSampler
from dapo_lib.train import Schedule, advantages, shaped_reward

SCHEDULE = Schedule(l_max=20, group_size=4)


def advantage(rewards, ids=None, dtype=torch.float64, **options):
    rewards = torch.tensor(rewards, dtype=dtype)
    ids = torch.zeros(len(rewards)) if ids is None else torch.tensor(ids)
    return group_advantages(rewards, ids, **({"eps": 0} | options))


def close(ours, theirs):
    torch.testing.assert_close(
        ours, torch.tensor(theirs, dtype=torch.float64), rtol=0, atol=1e-4
    )


@pytest.mark.parametrize("eps", [1e-6, 1e-8, 1e-9, 0])
@pytest.mark.parametrize("value", [-0.9, 0.1, 0.7, 1e6])
@pytest.mark.parametrize("size", [2, 3, 8, 10])
def test_B01_a_constant_group_is_exactly_zero(value, size, eps):
    for dtype in (torch.float32, torch.float64):
        for scale in ("group", "batch", "none"):
            ours = advantage([value] * size, dtype=dtype, eps=eps, scale=scale)
            assert (ours == 0).all()


def test_B01_noise_below_the_tolerance_is_not_signal():
    assert (advantage([0.9, 0.9 + 1e-12, 0.9]) == 0).all()
    assert (advantage([0.9, 0.9 + 1e-3, 0.9]) != 0).any()
    assert (advantage([0.9, 0.9 + 1e-3, 0.9], tolerance=0.01) == 0).all()


def test_B03_two_pass_variance():
    rewards = [0.0] + [0.95] * 7
    close(advantage(rewards, dtype=torch.float32), [-2.4749] + [0.3536] * 7)
    loo = advantage(rewards, scale="none", baseline="leave_one_out")
    assert loo[0].item() == pytest.approx(-0.95)
    far = advantage([1e6 + r for r in rewards])
    close(far, [-2.4749] + [0.3536] * 7)


@pytest.mark.parametrize("reward", [0.7, -1.0, 5.0])
def test_B04_B05_a_group_of_one_is_zero_and_warns(reward):
    with pytest.warns(UserWarning, match="group of one"):
        assert advantage([reward]).item() == 0
    with pytest.warns(UserWarning, match="group of one"):
        ours = advantage([reward, 1.0, -1.0], [1, 2, 2], baseline="leave_one_out")
    assert ours[0] == 0 and (ours[1:] != 0).all()


def test_B06_batch_scaling():
    rewards, ids = [1, -1, -1, -1, 1, 1, 1, -1], [0] * 4 + [1] * 4
    ours = advantage(rewards, ids, scale="batch")
    close(ours, [1.4031] + [-0.4677] * 3 + [0.4677] * 3 + [-1.4031])
    lanes = torch.tensor([0] * 4 + [1] * 4)
    apart = advantage(rewards, ids, scale="batch", lanes=lanes)
    close(apart, [1.5] + [-0.5] * 3 + [0.5] * 3 + [-1.5])


def test_B07_ddof_is_labelled():
    close(advantage([1, -1, -1, -1], ddof=1), [1.5, -0.5, -0.5, -0.5])
    close(advantage([1, -1, -1, -1], ddof=0), [1.7321] + [-0.5774] * 3)


def test_B08_an_empty_response_leaves_the_baseline(graded):
    batch = graded([1, 0], [0, 0], length=[3, 0], reward=[1.0, 100.0])
    with pytest.warns(UserWarning, match="group of one"):
        ours = advantages(ALGORITHMS["grpo"], SCHEDULE, batch)
    assert (ours == 0).all()


def test_B09_truncated_samples_in_or_out_of_the_baseline(graded):
    cut = [False, False, False, True]
    batch = graded([1, 0, 0, 0], [0] * 4, truncated=cut)
    filtering = ALGORITHMS["dapo"].model_copy(
        update={"overlong": "filter", "advantage_eps": 0.0}
    )
    inside = advantages(filtering, SCHEDULE, batch)
    close(inside, [1.5, -0.5, -0.5, -0.5])
    mask = overlong_mask(batch.mask, batch.truncated)
    assert not mask[3].any() and mask[:3].all()
    out = filtering.model_copy(update={"overlong_baseline": "exclude"})
    close(advantages(out, SCHEDULE, batch), [1.1547, -0.5774, -0.5774, 0])


def test_B09_all_truncated_is_no_update_and_no_crash(run):
    made = run(options={"overlong": "filter", "overlong_baseline": "exclude"}, width=1)
    made.policy.logits.data[..., 1] = -1e9  # EOS never comes
    made.policy.logits.data[..., 2:4] = 0
    before = made.policy.logits.detach().clone()
    with pytest.warns(UserWarning, match="every response is masked"):
        steps = list(made.steps)
    assert made.state.updates == 0 and all(s.updates == [] for s in steps)
    assert torch.equal(before, made.policy.logits)


def test_B11_group_sizes_may_differ():
    assert (advantage([1.0, 1, 0, 0, 0], [0, 0, 1, 1, 1]) == 0).all()
    ours = advantage([1.0, 0, 1, 0, 0], [8, 8, 3, 3, 3])
    close(ours, [0.7071, -0.7071, 1.1547, -0.5774, -0.5774])


def test_B12_loss_zero_is_not_gradient_zero():
    old = torch.full((4, 10), -1.0, dtype=torch.float64)
    mask = torch.arange(10)[None] < torch.tensor([2, 4, 4, 10])[:, None]
    weight = torch.tensor([1.5, -0.5, -0.5, -0.5], dtype=torch.float64)
    for reduction, value in (("seq_mean", 0.0), ("token_mean", 0.3)):
        new = old.clone().requires_grad_()
        loss, _ = policy_loss(new, old, weight, mask, reduction=reduction)
        loss.backward()
        assert loss.item() == pytest.approx(value, abs=1e-12)
        assert new.grad.abs().sum() > 0.1


def test_B14_no_answer_is_wrong_not_a_third_value():
    assert rule_reward(torch.tensor([0, 0, 0])).tolist() == [-1, -1, -1]
    assert (advantage(rule_reward(torch.tensor([0, 0, 0])).tolist()) == 0).all()
    close(advantage([-1, -1, 0])[2:], [1.1547])  # what a default of 0 would teach


@pytest.mark.parametrize("verdicts", [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1]])
def test_B15_an_unreadable_reference_removes_its_group(graded, verdicts):
    valid = torch.tensor([False] * 4 + [True] * 4)
    batch = graded([*verdicts, 1, 0, 0, 0], [0] * 4 + [1] * 4, valid=valid)
    sampler = DynamicSampler(2, 4, max_rounds=1)
    kept, ledger = sampler.fill(lambda need: _prompts(2), lambda prompts: batch)
    assert kept.group_id.tolist() == [1] * 4
    assert ledger.invalid == 1 and ledger.all_wrong == ledger.all_right == 0
    assert ledger.responses_all == 4 and ledger.histogram.tolist() == [[0, 1, 0, 0, 0]]


def _prompts(n):
    from dapo_lib.rollout import Prompts

    ids = torch.arange(n)
    return Prompts(ids, ids, torch.zeros(n, dtype=torch.long))


def test_B_shaping_keeps_an_empty_response_in_the_reward(graded):
    batch = graded([1, 0], [0, 0], length=[3, 0])
    assert shaped_reward(ALGORITHMS["dapo"], SCHEDULE, batch).tolist() == [1, -1]
