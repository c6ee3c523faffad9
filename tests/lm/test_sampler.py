"""What is recorded while sampling is what the packed forward recomputes."""

import pytest
import torch

from dapo_lib.errors import BadInput
from dapo_lib.lm import sampler
from dapo_lib.lm.model import Decoder, ModelConfig
from dapo_lib.lm.packing import log_prob
from dapo_lib.lm.sampler import by_exponential_race, by_inverse_cdf, sample

CONFIG = ModelConfig(vocabulary=9, width=16, hidden=32, heads=2, positions=24)
EOS, PAD = 7, 8


@pytest.fixture(scope="module")
def model():
    return Decoder(CONFIG, torch.Generator().manual_seed(0))


def draw(model, seed=0, n=6, group_size=5, l_max=12, **options):
    g = torch.Generator().manual_seed(seed)
    prompts = torch.randint(7, (n, 4), generator=torch.Generator().manual_seed(9))
    options = {"l_max": l_max, "eos": EOS, "pad": PAD, **options}
    return prompts, sample(model, prompts, group_size, g, **options)


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_recorded_log_probs_equal_recomputed(model, compact, temperature):
    prompts, out = draw(model, compact=compact, temperature=temperature)
    group = torch.arange(6).repeat_interleave(5)
    again = log_prob(
        model, prompts, group, out.tokens, out.length, temperature=temperature
    )
    assert float((again - out.log_prob).detach().abs().max()) <= 5e-6


def test_a_cache_that_grows_keeps_what_it_has(monkeypatch):
    """Past the smallest product and twice past the room, with rows that leave."""
    monkeypatch.setattr(sampler, "ROOM", 2)
    config = CONFIG.model_copy(update={"heads": 1, "width": 32, "positions": 80})
    wide = Decoder(config, torch.Generator().manual_seed(1))
    prompts, out = draw(wide, n=12, l_max=70)
    assert out.length.max() > 60 and out.length.min() < 20
    group = torch.arange(12).repeat_interleave(5)
    again = log_prob(wide, prompts, group, out.tokens, out.length)
    assert float((again - out.log_prob).detach().abs().max()) <= 5e-6


def test_lengths_masks_and_truncation(model):
    _, out = draw(model, n=40, l_max=6)
    inside = torch.arange(out.tokens.shape[1]) < out.length[:, None]
    assert ((out.log_prob < 0) == inside).all() and ((out.entropy > 0) == inside).all()
    assert (out.tokens[~inside] == PAD).all()
    ends = out.tokens.gather(1, out.length[:, None] - 1)[:, 0] == EOS
    assert (ends == ~out.truncated).all()
    assert (out.length[out.truncated] == 6).all() and out.truncated.any()
    assert ((out.tokens == EOS) & inside).sum(1).max() == 1
    full = (out.length == 6) & ends
    assert full.any()  # the cap with an EOS is complete, not cut


def test_uncompacted_decoding_draws_what_multinomial_draws(model):
    """A plain loop: whole sequences recomputed, ``torch.multinomial`` at each step."""
    prompts, out = draw(model, compact=False, choose=by_exponential_race)
    g, rows = torch.Generator().manual_seed(0), 30
    group = torch.arange(6).repeat_interleave(5)
    tokens = torch.zeros(rows, 0, dtype=torch.long)
    done = torch.zeros(rows, dtype=torch.bool)
    for time in range(out.tokens.shape[1]):
        length = torch.full((rows,), time + 1)
        each = [
            log_prob(
                model,
                prompts,
                group,
                torch.cat([tokens, torch.full((rows, 1), symbol)], 1),
                length,
            )[:, -1]
            for symbol in range(CONFIG.vocabulary)
        ]
        p = torch.stack(each, 1).exp()
        token = torch.multinomial(p, 1, generator=g)[:, 0]
        assert (out.tokens[~done, time] == token[~done]).all()
        done |= token == EOS
        tokens = torch.cat([tokens, token[:, None]], 1)


@pytest.mark.parametrize("choose", [by_inverse_cdf, by_exponential_race])
def test_choices_follow_the_distribution(choose):
    p = torch.tensor([0.5, 0.0, 0.3, 0.2])
    n = 40_000
    ids = choose(p.repeat(n, 1), torch.Generator().manual_seed(0))
    share = torch.bincount(ids, minlength=4) / n
    assert share[1] == 0
    assert float((share - p).abs().max()) < 5 * 0.5 / n**0.5


def test_compaction_leaves_the_distribution_alone(model):
    """Mean length with and without it agree within five standard errors."""
    plain = draw(model, 1, n=40, group_size=25, compact=False)[1].length.double()
    quick = draw(model, 2, n=40, group_size=25)[1].length.double()
    error = (plain.var() / 1000 + quick.var() / 1000).sqrt()
    assert abs(float(plain.mean() - quick.mean())) < 5 * float(error)


def test_same_seed_same_tokens(model):
    a, b = draw(model, 3)[1], draw(model, 3)[1]
    assert torch.equal(a.tokens, b.tokens) and torch.equal(a.log_prob, b.log_prob)


def test_too_few_positions_and_temperature_zero_are_refused(model):
    with pytest.raises(BadInput, match="l_max: got 21"):
        draw(model, l_max=21)
    with pytest.raises(BadInput, match="temperature"):
        draw(model, temperature=0.0)
