"""The bench compares like with like: its plain peer computes what ours computes."""

import pytest
import torch

from benchmarks import plain, skip
from benchmarks.addition import Addition
from benchmarks.ours import QWEN2, Ours, Products, Work
from dapo_lib.lm.model import Decoder, ModelConfig

TINY = ModelConfig(**QWEN2, width=16, layers=2, hidden=32, heads=2)
WORK = Work("T 8x2 G4 L30", TINY, 8, 2, 4, 30)


def side(kind, full=False):
    work = WORK._replace(full=full)
    model = Decoder(TINY, torch.Generator().manual_seed(0))
    return kind(work, model, Addition(1, l_max=work.l_max))


@pytest.mark.parametrize("full", [False, True])
def test_plain_records_what_ours_recomputes(full):
    peer = side(plain.Plain, full)
    rollout = peer.sample()
    again = peer.policy.log_prob(rollout).detach()
    inside = rollout.mask.clone()
    if full:  # where EOS is out of reach, the recorded distribution is another
        assert (rollout.length == 30).all() and rollout.truncated.all()
        return
    assert float((again - rollout.log_prob_old)[inside].abs().max()) <= 5e-6
    assert (rollout.tokens[~inside] == peer.task.vocabulary.pad_id).all()


def test_plain_and_ours_have_one_gradient():
    peer = side(plain.Plain)
    rollout = peer.sample()
    model, prompts = peer.policy.model, peer.task.prompts[rollout.index]
    parts = plain.log_prob(model, prompts, rollout), peer.policy.log_prob(rollout)
    flat = []
    for part in parts:
        grads = torch.autograd.grad(part.sum(), list(model.parameters()))
        flat.append(torch.cat([g.flatten() for g in grads]))
    assert torch.allclose(*parts, atol=1e-5)
    assert float((flat[0] - flat[1]).norm() / flat[0].norm()) <= 5e-6


def test_a_cycle_moves_both_by_the_same_number_of_updates():
    for kind in (Ours, plain.Plain):
        loop = side(kind)
        before = [p.clone() for p in loop.policy.parameters()]
        loop.cycle()
        after = list(loop.policy.parameters())
        assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
        steps = {float(s["step"]) for s in loop.state.optimiser.state.values()}
        assert steps == {WORK.updates}
        assert len(loop.seconds) == 1 and loop.seconds[0] > 0


def test_products_are_of_every_packed_token():
    ours = side(Ours)
    ours.cycle()
    shapes = Products(ours)._shapes()
    predicted = int(ours.rollout.length.sum()) - len(ours.rollout)
    prompts = sum(p for _, p in shapes) - predicted
    assert WORK.updates <= prompts <= len(ours.rollout)
    assert sum(t for t, _ in shapes) == predicted + 12 * prompts


def test_skipping_silent_groups_leaves_the_gradient():
    ours = side(Ours)
    ours.cycle()
    row = skip.measure(ours, repeats=1)
    assert row["gradient_gap"] <= 2e-6 and row["ratio_peer_ours"] > 0
