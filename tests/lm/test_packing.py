"""Packed log-probabilities and gradients equal the plain padded forward."""

import pytest
import torch
import torch.nn.functional as F

from dapo_lib.lm.model import Decoder, ModelConfig
from dapo_lib.lm.packing import log_prob, pack

SHAPES = {
    "relu": ModelConfig(vocabulary=11, width=16, hidden=32, layers=2, heads=2),
    "qwen2": ModelConfig(
        vocabulary=11,
        width=16,
        hidden=24,
        layers=2,
        heads=2,
        mlp="swiglu",
        norm="rms",
        qkv_bias=True,
        tied=True,
    ),
}


def batch(seed=0, rows=17, n_prompts=5, width=4, longest=9):
    g = torch.Generator().manual_seed(seed)
    prompts = torch.randint(11, (n_prompts, width), generator=g)
    group = torch.randint(n_prompts, (rows,), generator=g)
    length = torch.randint(1, longest + 1, (rows,), generator=g)
    tokens = torch.randint(11, (rows, longest), generator=g)
    return prompts, group, tokens, length


def padded(model, prompts, group, tokens, length):
    """One whole sequence a row, an explicit causal mask, nothing shared."""
    width, longest = prompts.shape[1], tokens.shape[1]
    whole = torch.cat([prompts[group], tokens], 1)
    rows, size = whole.shape

    def attend(layer, qkv):
        q, k, v = qkv.unflatten(0, (rows, size)).permute(2, 0, 3, 1, 4)
        score = (q @ k.mT) / q.shape[-1] ** 0.5
        hidden = torch.ones(size, size, dtype=torch.bool).triu(1)
        out = score.masked_fill(hidden, -torch.inf).softmax(-1) @ v
        return out.transpose(1, 2).flatten(2).flatten(0, 1)

    hidden = model(whole.flatten(), torch.arange(size).repeat(rows), attend)
    logits = model.logits(hidden).unflatten(0, (rows, size))[:, width - 1 : -1]
    picked = logits.log_softmax(-1).gather(2, tokens[..., None])[..., 0]
    return torch.where(torch.arange(longest) < length[:, None], picked, 0.0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("buckets", [1, 4])
def test_values_and_gradients_equal_the_padded_forward(shape, buckets):
    torch.manual_seed(0)
    model = Decoder(SHAPES[shape], torch.Generator().manual_seed(0)).double()
    model.rotation = model.rotation.to(torch.complex128)
    data = batch()
    weight = torch.randn(data[2].shape).double()
    ours, plain = log_prob(model, *data, buckets=buckets), padded(model, *data)
    assert torch.allclose(ours, plain, atol=1e-10)
    found = torch.autograd.grad((ours * weight).sum(), list(model.parameters()))
    wanted = torch.autograd.grad((plain * weight).sum(), list(model.parameters()))
    for a, b in zip(found, wanted, strict=True):
        assert torch.allclose(a, b, atol=1e-9 * float(b.abs().max().clamp(min=1)))


def test_bucketed_gradient_equals_the_whole_in_float32():
    model = Decoder(SHAPES["relu"], torch.Generator().manual_seed(1))
    flat = []
    for buckets in (1, 4):
        total = log_prob(model, *batch(seed=3, rows=40), buckets=buckets).sum()
        grads = torch.autograd.grad(total, list(model.parameters()))
        flat.append(torch.cat([g.flatten() for g in grads]))
    assert float((flat[0] - flat[1]).norm() / flat[0].norm()) <= 1e-6


def test_padding_and_row_order_change_nothing():
    model = Decoder(SHAPES["relu"], torch.Generator().manual_seed(1))
    prompts, group, tokens, length = batch()
    plain = log_prob(model, prompts, group, tokens, length)
    wider = F.pad(tokens, (0, 3), value=7)
    assert torch.allclose(
        log_prob(model, prompts, group, wider, length)[:, :9], plain, atol=1e-6
    )
    order = torch.randperm(len(group), generator=torch.Generator().manual_seed(5))
    moved = log_prob(model, prompts, group[order], tokens[order], length[order])
    assert torch.allclose(moved, plain[order], atol=1e-6)


def test_each_prompt_is_computed_once_and_the_last_token_never():
    prompts, group, tokens, length = batch()
    plan = pack(prompts, group, tokens, length)
    assert len(plan.ids) == prompts.numel() + int((length - 1).sum())


def test_rows_of_one_token_feed_nothing():
    model = Decoder(SHAPES["relu"], torch.Generator().manual_seed(1))
    prompts, group, tokens, _ = batch()
    ones = torch.ones(len(group), dtype=torch.long)
    out = log_prob(model, prompts, group, tokens, ones)
    assert torch.allclose(out, padded(model, prompts, group, tokens, ones), atol=1e-6)


def test_temperature_divides_the_logits():
    model = Decoder(SHAPES["relu"], torch.Generator().manual_seed(1))
    data = batch()
    hot = log_prob(model, *data, temperature=2.0)
    with torch.no_grad():
        model.head /= 2
    assert torch.allclose(hot, log_prob(model, *data), atol=1e-6)
