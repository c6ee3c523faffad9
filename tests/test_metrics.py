"""Metrics: merging, entropy and log-probabilities, closed forms by enumeration."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dapo_lib.metrics import (
    Ratio,
    avg_at_k,
    by_update_index,
    clip_diagnostics,
    entropy,
    maj_at_k,
    merge,
    pass_at_k,
    token_log_prob,
)

EVERY = settings(max_examples=40, deadline=None, derandomize=True)


@EVERY
@given(n=st.integers(1, 8), data=st.data())
def test_pass_at_k_by_enumeration(n, data):
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    right = [i < c for i in range(n)]
    subsets = list(itertools.combinations(right, k))
    share = sum(map(any, subsets)) / len(subsets)
    assert pass_at_k(n, c, k) == pytest.approx(share)


def test_pass_at_k_of_large_numbers():
    assert 0 < pass_at_k(10_000, 1, 32) < 0.0033
    assert pass_at_k(10_000, 9_990, 32) == 1


@EVERY
@given(answers=st.lists(st.sampled_from(["1", "2", "3", None]), min_size=1, max_size=9))
def test_maj_at_k_is_the_expected_value_of_a_random_tie_break(answers):
    correct = [a == "2" for a in answers]
    named = [a for a in answers if a is not None]
    top = max((named.count(a) for a in named), default=0)
    winners = sorted({a for a in named if named.count(a) == top})
    expected = winners.count("2") / len(winners) if winners else 0.0
    assert maj_at_k(answers, correct) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pass_at_k(4, 5, 1), "c: got 5"),
        (lambda: pass_at_k(4, -1, 1), "c: got -1"),
        (lambda: pass_at_k(4, 1, 5), "k: got 5"),
        (lambda: pass_at_k(4, 1, 0), "k: got 0"),
        (lambda: avg_at_k([]), "correct: got an empty sequence"),
        (lambda: maj_at_k(["1"], [True, False]), "correct: got 2"),
        (lambda: maj_at_k([], []), "correct: got 0"),
        (lambda: entropy(torch.zeros(2), 0.0), "temperature: got 0.0"),
        (
            lambda: token_log_prob(torch.zeros(2, 3), torch.zeros(3).long()),
            "tokens: got",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_entropy_of_impossible_tokens_and_its_gradient():
    logits = torch.tensor([0.0, 0.0, -torch.inf], requires_grad=True)
    h = entropy(logits)
    h.backward()
    assert h.item() == pytest.approx(math.log(2)) and logits.grad.isfinite().all()


def test_token_log_prob_against_the_definition():
    g = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 4, 9, generator=g, dtype=torch.float64)
    tokens = torch.randint(0, 9, (3, 4), generator=g)
    ours = token_log_prob(logits, tokens, 0.7)
    for i, j in itertools.product(range(3), range(4)):
        row = [math.exp(v / 0.7) for v in logits[i, j].tolist()]
        p = row[tokens[i, j]] / sum(row)
        assert ours[i, j].item() == pytest.approx(math.log(p))


def test_records_merge_and_empty_populations_are_nan():
    assert merge([]) == {}
    nothing = clip_diagnostics([])
    assert all(math.isnan(r.value) for r in nothing.values())
    assert (Ratio(1, 4) + Ratio(2, 4)).value == 3 / 8


def test_update_indices_are_kept_apart():
    rollouts = [
        [{"tokens": 4.0, "clip_high": 0.0}, {"tokens": 4.0, "clip_high": 2.0}],
        [{"tokens": 2.0, "clip_high": 0.0}],
    ]
    first, second = by_update_index(rollouts)
    assert first["clip_high"] == Ratio(0, 6) and second["clip_high"].value == 0.5
