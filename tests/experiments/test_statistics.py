"""Intervals against known tables, and their coverage against simulation."""

import numpy as np
import pytest

from dapo_lib.experiments.statistics import mean_interval, paired, wilson


def test_interval_covers_the_mean_as_often_as_it_says():
    rng = np.random.default_rng(0)
    samples = rng.normal(3.0, 2.0, size=(4000, 10))
    covered = [not mean_interval(row).excludes(3.0) for row in samples]
    assert 0.94 < np.mean(covered) < 0.96


def test_pairing_removes_what_seeds_share():
    rng = np.random.default_rng(1)
    shared = rng.normal(0, 10, 12)
    a, b = shared + rng.normal(0, 0.1, 12), shared + 1 + rng.normal(0, 0.1, 12)
    assert paired(a, b).interval.excludes(0.0)
    assert not mean_interval(b).excludes(mean_interval(a).mean)


def test_signs_and_t_of_a_constant_difference():
    p = paired([0.0, 1.0, 2.0], [0.5, 1.5, 2.5])
    assert (p.positive, p.negative, p.same_sign) == (3, 0, 3)
    assert p.t == float("inf")


def test_one_seed_says_nothing():
    assert not mean_interval([5.0]).excludes(-1e9)


def test_wilson_is_the_published_interval():
    low, high = wilson(97, 128)
    assert (round(low, 3), round(high, 3)) == (0.677, 0.824)


@pytest.mark.parametrize("values", [[], [[1.0]]])
def test_no_seeds_is_an_error(values):
    with pytest.raises(ValueError, match="values"):
        mean_interval(values)
