"""The nucleus of a distribution against a plain search; no model is needed here."""

from __future__ import annotations

import pytest
import torch

from dapo_lib.lm.huggingface import nucleus


def searched(row: list[float], top_p: float) -> list[float]:
    """The fewest most probable tokens that reach top_p, first come first of equals."""
    ranked = sorted(range(len(row)), key=lambda i: (-row[i], i))
    kept, mass = set(), 0.0
    for token in ranked:
        if mass >= top_p:
            break
        kept.add(token)
        mass += row[token]
    return [p if i in kept else 0.0 for i, p in enumerate(row)]


@pytest.mark.parametrize("top_p", [1e-6, 0.3, 0.7, 0.95, 1.0])
def test_the_nucleus_is_the_one_that_a_search_finds(top_p):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(200, 9, generator=generator, dtype=torch.float64) * 2
    probability = logits.softmax(-1)
    found = nucleus(probability, top_p)
    assert found.tolist() == [searched(row, top_p) for row in probability.tolist()]
    mass = found.sum(-1)
    assert bool((mass >= top_p - 1e-12).all())
    fewest = torch.where(found > 0, found, torch.inf).min(-1).values
    assert top_p == 1 or bool((mass - fewest < top_p).all())  # none could be left out


def test_equal_tokens_and_a_certain_one():
    even = torch.full((1, 4), 0.25)
    assert nucleus(even, 0.5).tolist() == [[0.25, 0.25, 0, 0]]
    assert nucleus(even, 0.51).tolist() == [[0.25, 0.25, 0.25, 0]]
    assert nucleus(torch.tensor([[0.0, 1.0]]), 0.7).tolist() == [[0, 1]]


def test_one_keeps_the_very_same_numbers():
    given = torch.rand(3, 5)
    assert nucleus(given, 1.0) is given  # training draws from what it always drew from
