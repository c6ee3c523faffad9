"""Every trap fails where it should, and its repair does not."""

import math

import pytest

from dapo_lib.conformance.traps import TRAPS
from dapo_lib.labels import LANGS

FAILING = {
    "max_negative": (-1.28, -1.5),
    "falsy_eps_high": (1.1, 1.0),
    "mask_after_exp": ([math.nan, 1.0, math.nan], [1.0, 1.0, 0.0]),
    "sequence_ratio": (1.28, 3.28 / 3),
    "micro_means": (0.5, 0.2),
    "counted_before_mask": (25 / 30, 1.0),
    "inverted_k3": (0.2719, 0.3681),
    "forgotten_temperature": ([0.8969, 6.6275], [1.0, 1.0]),
    "noise_over_noise": ([0.056] * 8, [0.0] * 8),
    "one_pass_std": ([-2075.39] + [0.378] * 7, [-2.4749] + [0.3536] * 7),
    "golden_silence": ([-0.5774, -0.5774, 1.1547], [0.0] * 3),
    "filter_shaped": (True, False),
    "float_std_filter": (True, False),
    "no_lower_clamp": (-3.0, -1.0),
    "pad_is_eos": ([1, 1, 0, 0], [1, 1, 1, 0]),
    "mean_of_means": (0.25, 0.01),
    "bootstrap_pass": (0.4375, 0.5),
    "first_brace": (r"\frac{1", r"\frac{1}{2}"),
}


def test_every_trap_has_its_published_values():
    assert FAILING.keys() == TRAPS.keys() and len(TRAPS) >= 10


@pytest.mark.parametrize("name", FAILING)
def test_the_broken_one_fails_as_reported_and_the_fixed_one_is_right(name):
    wrong, right = FAILING[name]
    outcome = TRAPS[name].run()
    same = {"abs": 1e-4, "rel": 1e-2, "nan_ok": True}
    assert outcome.wrong == (wrong if isinstance(wrong, str) else approx(wrong, **same))
    same = {"abs": 1e-4, "rel": 0}
    assert outcome.right == (right if isinstance(right, str) else approx(right, **same))
    assert not outcome.equal


def approx(value, **options):
    return pytest.approx(value, **options)


@pytest.mark.parametrize("name", FAILING)
def test_it_hides_where_the_two_agree(name):
    assert TRAPS[name].hides().equal


@pytest.mark.parametrize("name", FAILING)
def test_readable_on_a_page(name):
    trap = TRAPS[name]
    for function in (trap.broken, trap.fixed):
        assert function.__doc__ and function.__module__.startswith("dapo_lib.")
    for lang in LANGS:
        assert trap.title(lang) and trap.symptom(lang)
