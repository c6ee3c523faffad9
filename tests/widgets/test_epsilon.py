"""The explorer's mathematics in the browser's language against the library's."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from dapo_lib.errors import BadInput
from dapo_lib.objective import clipped_surrogate
from dapo_lib.widgets import EpsilonExplorer

CASES = [
    (r, a, low, high)
    for r, a, low, high in itertools.product(
        (0.0, 0.3, 0.5, 0.9, 1.0, 1.1, 1.5, 2.0), (-1.0, 1.0), (0.1, 0.2), (0.2, 0.5)
    )
]


def test_surrogate_and_gradient_are_the_library_s(node) -> None:
    got = node("epsilon", [["surrogate", c] for c in CASES])
    slopes = node("epsilon", [["gradient", c] for c in CASES])
    for (r, a, low, high), value, slope in zip(CASES, got, slopes, strict=True):
        ratio = torch.tensor(r, dtype=torch.float64, requires_grad=True)
        right = clipped_surrogate(ratio, torch.tensor(a).double(), low, high)
        assert value == pytest.approx(right.item(), abs=1e-12)
        (grad,) = torch.autograd.grad(right, ratio)
        assert slope == pytest.approx(float(grad * r), abs=1e-12), (r, a, low, high)


def test_closed_form_10(node) -> None:
    calls = [["refreshes", [0.01, 0.5, e]] for e in (0.2, 0.28, 0.0)]
    assert node("epsilon", calls) == [22, 16, "Infinity"]
    rare, common = node(
        "epsilon", [["ceiling", [0.01, 0.28]], ["ceiling", [0.9, 0.28]]]
    )
    assert rare["p"] == pytest.approx(0.0128) and rare["binds"]
    assert common["p"] == 1 and not common["binds"]


def test_nearest_run_exists_and_is_nearest(node, samples) -> None:
    grid = samples.grid()
    asked = [(0.2, 0.28), (0.6, 0.8), (0.0, 1.0), (0.33, 0.33)]
    for (low, high), run in zip(
        asked, node("epsilon", [["nearest", [grid, *a]] for a in asked]), strict=True
    ):
        distances = {
            (i, j): math.hypot(grid["eps_low"][i] - low, grid["eps_high"][j] - high)
            for i, j in itertools.product(range(5), range(5))
            if grid["metrics"][0]["values"][i][j]
        }
        assert distances[run["i"], run["j"]] == pytest.approx(min(distances.values()))


def test_a_grid_of_another_shape_is_named(samples) -> None:
    grid = samples.grid()
    grid["metrics"][0]["values"][0] = grid["metrics"][0]["values"][0][:2]
    with pytest.raises(BadInput, match=r"grid\.values: .*5 x 5 runs of 60"):
        EpsilonExplorer(grid=grid)
