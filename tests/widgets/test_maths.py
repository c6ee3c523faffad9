"""Each explorer's mathematics, run in Node, against the library on the same inputs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from dapo_lib.advantage import group_advantages
from dapo_lib.candidate.exact.gradient import dynamic_scale, gradient_scale
from dapo_lib.candidate.exact.groups import binomial, dead_group_probability
from dapo_lib.objective import REDUCTIONS, clipped_surrogate, divisor
from dapo_lib.overlong import soft_overlong

CLOSE = {"rel": 1e-9, "abs": 1e-12}


def test_advantages_are_the_library_s_under_every_option(node) -> None:
    rng = np.random.default_rng(3)
    groups = [[1, -1, -1, -1], [1, 1, 1, -1], [-1, -1, -1, -1.5], [0.7], [1, 1]]
    groups += [rng.choice([1.0, -1.0, -1.5, 0.5], size=n).tolist() for n in (2, 5, 16)]
    flat = torch.tensor([r for group in groups for r in group], dtype=torch.float64)
    ids = torch.tensor([i for i, group in enumerate(groups) for _ in group])
    names = ("ddof", "scale", "baseline")
    options = [
        dict(zip(names, o, strict=True))
        for o in itertools.product(
            (0, 1), ("group", "batch", "none"), ("mean", "leave_one_out")
        )
    ]
    got = node("advantage", [["advantages", [groups, o]] for o in options])
    for option, mine in zip(options, got, strict=True):
        with pytest.warns(UserWarning, match="one response"):
            right = group_advantages(flat, ids, **option).tolist()
        assert [a for group in mine for a in group] == pytest.approx(right, **CLOSE), (
            option
        )


def test_the_filter_reads_correctness_alone(node) -> None:
    marks = [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1], [1], []]
    got = node("advantage", [["hasSignal", [m]] for m in marks])
    assert got == [False, True, False, False, False]


def test_group_closed_forms(node) -> None:
    cases = [(p, g) for p in (0.01, 1 / 6, 0.5, 0.93) for g in (2, 4, 8, 16, 32)]
    for name, right in (
        ("binomial", lambda p, g: binomial(p, g).tolist()),
        ("deadShare", lambda p, g: dead_group_probability(p, g).item()),
        ("signal", lambda p, g: gradient_scale(p, g).item()),
    ):
        got = node("group", [[name, list(c)] for c in cases])
        for case, mine in zip(cases, got, strict=True):
            assert mine == pytest.approx(right(*case), **CLOSE), (name, case)


def test_the_refill_ledger_is_what_redrawing_the_missing_costs(node) -> None:
    p, size, wanted, rounds, tokens = 0.1, 4, 6, 3, 12
    mine = node("group", [["ledger", [p, size, wanted, rounds, tokens]]])[0]
    rng = np.random.default_rng(0)
    drawn, kept, full = [], [], 0
    for _ in range(20000):
        missing, n = wanted, 0
        for _ in range(rounds):
            right = rng.binomial(size, p, size=missing)
            n += missing
            missing -= int(((right > 0) & (right < size)).sum())
        drawn.append(n)
        kept.append(wanted - missing)
        full += missing == 0
    for name, sample in (("drawn", drawn), ("kept", kept)):
        error = 4 * np.std(sample) / math.sqrt(len(sample))
        assert abs(mine[name] - np.mean(sample)) < error, name
    assert mine["full"] == pytest.approx(full / 20000, abs=0.015)
    assert mine["drawn"] == pytest.approx(
        mine["kept"] + mine["all_wrong"] + mine["all_right"]
    )
    assert mine["generated"] == pytest.approx(mine["drawn"] * size * tokens)


def test_per_response_the_refill_gains_nothing(node) -> None:
    for p, size in ((0.05, 8), (0.5, 4), (0.9, 16)):
        scale, dead = node("group", [["signal", [p, size]], ["deadShare", [p, size]]])
        assert scale / (1 - dead) == pytest.approx(dynamic_scale(p, size).item())


@pytest.mark.parametrize("order", ["grouped", "mixed"])
def test_reductions_are_the_library_s(node, order: str) -> None:
    lengths, groups, l_max = [3, 1, 7, 2, 5, 5, 0, 9], [0] * 4 + [1] * 4, 20
    mask = torch.arange(9)[None] < torch.tensor(lengths)[:, None]
    for parts in (1, 2, 4, 8):
        cut = node("reduction", [["split", [8, order, parts]]])[0]
        assert sorted(cut["rows"]) == list(range(8))
        calls = [
            ["weights", [lengths, groups, cut["micro"], r, l_max]] for r in REDUCTIONS
        ]
        for name, mine in zip(REDUCTIONS, node("reduction", calls), strict=True):
            right = torch.zeros(8, dtype=torch.float64)
            if name == "micro_token_mean":
                alive = [
                    part
                    for part in range(parts)
                    if sum(
                        n
                        for n, m in zip(lengths, cut["micro"], strict=True)
                        if m == part
                    )
                ]
                for part in alive:
                    rows = [i for i in range(8) if cut["micro"][i] == part]
                    right[rows] = 1 / divisor(mask[rows], name, denominator=len(alive))
            else:
                ids = torch.tensor(groups)
                right[:] = 1 / divisor(mask, name, group_ids=ids, l_max=l_max)
            has_token = torch.tensor(lengths) > 0
            mine = torch.tensor(mine, dtype=torch.float64)[has_token]
            assert torch.allclose(mine, right[has_token], rtol=1e-9), (name, parts)


def test_only_the_micro_batch_mean_depends_on_the_split(node) -> None:
    shape = {"short": 10, "long": 80, "nLong": 3}
    batch = node("reduction", [["batch", [shape]]])[0]
    assert batch["lengths"] == [10] * 5 + [80] * 3
    splits = ([0] * 8, [0] * 4 + [1] * 4)
    calls = [
        ["weights", [batch["lengths"], batch["groups"], micro, name, 200]]
        for name, micro in itertools.product(REDUCTIONS, splits)
    ]
    got = node("reduction", calls)
    losses = node(
        "reduction", [["value", [batch["lengths"], batch["loss"], w]] for w in got]
    )
    values = dict(zip(REDUCTIONS, zip(*[iter(losses)] * 2, strict=True), strict=True))
    moved = [name for name, (a, b) in values.items() if abs(a - b) > 1e-12]
    assert moved == ["micro_token_mean"]


def test_the_penalty_is_the_library_s(node) -> None:
    for l_max, l_cache in ((20480, 4096), (16384, 4096), (24, 4), (20, 0), (9, 9)):
        lengths = sorted({0, 1, l_max - l_cache, l_max - l_cache + 1, l_max, l_max + 1})
        lengths += [l_max * 3, l_max // 2]
        got = node("overlong", [["penalty", [n, l_max, l_cache]] for n in lengths])
        right = soft_overlong(torch.tensor(lengths), l_max=l_max, l_cache=l_cache)
        assert got == pytest.approx(right.tolist(), **CLOSE), (l_max, l_cache)


@pytest.mark.parametrize("baseline", ["include", "exclude"])
@pytest.mark.parametrize("filtering", [True, False])
def test_graded_rows_have_the_library_s_advantages(node, baseline, filtering) -> None:
    lengths, right = [10, 22, 23, 24], [True, False, True, False]
    cut = [False, False, False, True]
    rows = [
        {"length": n, "correct": c, "cut": t}
        for n, c, t in zip(lengths, right, cut, strict=True)
    ]
    how = {"lMax": 24, "lCache": 4, "filtering": filtering, "baseline": baseline}
    got = node("overlong", [["grade", [rows, how]]])[0]
    reward = torch.tensor([1.0, -1, 1, -1], dtype=torch.float64)
    reward += soft_overlong(torch.tensor(lengths), l_max=24, l_cache=4)
    masked = torch.tensor(cut) & filtering
    include = ~masked if baseline == "exclude" else None
    wanted = group_advantages(reward, torch.zeros(4), include=include)
    wanted[masked] = 0.0
    assert [r["advantage"] for r in got] == pytest.approx(wanted.tolist(), **CLOSE)


def test_traps_right_and_broken(node) -> None:
    for r in (0.1, 0.5, 0.9, 1.2, 1.5, 2.0):
        right, wrong = node(
            "trap", [["minRule", [r, -1, 0.2, 0.28]], ["maxRule", [r, -1, 0.2, 0.28]]]
        )
        ratio, minus = torch.tensor(r).double(), torch.tensor(-1.0).double()
        assert right == pytest.approx(clipped_surrogate(ratio, minus, 0.2, 0.28).item())
        clipped = min(max(r, 0.8), 1.28)
        assert wrong == pytest.approx(max(-r, -clipped))
    finite, broken = node("trap", [["maskAfterExp", [88]], ["maskAfterExp", [100]]])
    assert finite == 1 and broken == "NaN"
    tensor = torch.tensor([0.0, 100.0])
    assert torch.isnan((tensor.exp() * torch.tensor([1.0, 0])).sum())
    unclamped = node(
        "trap", [["penaltyUnclamped", [n, 100, 20]] for n in (70, 90, 140)]
    )
    assert unclamped == pytest.approx([0, -0.5, -3])  # G03 of the conformance cases
    rewards = torch.tensor([-1.0, -1, -1, -1.5])
    mine = node("trap", [["shapedAdvantage", [-0.5]], ["shapedAdvantage", [0]]])
    right = group_advantages(rewards, torch.zeros(4))[3].item()
    assert mine == pytest.approx([right, 0])


def test_mean_of_means_against_the_reductions(node) -> None:
    lengths, loss = [2, 8], [1, 0]  # A01 of the conformance cases
    right, wrong = node(
        "trap", [["tokenMean", [lengths, loss]], ["meanOfMeans", [lengths, loss, 2]]]
    )
    assert (right, wrong) == pytest.approx((0.2, 0.5))


def test_mechanisms_snap_to_the_nearest_arm(node, samples) -> None:
    arms = samples.runs()["arms"]
    exact, near = node(
        "mechanisms",
        [
            ["nearestArm", [arms, ["dynamic", "clip_higher"]]],
            ["nearestArm", [arms, ["overlong"]]],
        ],
    )
    assert exact["arm"]["name"] == "arm2" and exact["wrong"] == []
    assert near["arm"]["name"] == "arm0" and near["wrong"] == ["overlong"]


def test_leaks_snap_and_dots_do_not_overlap(node, samples) -> None:
    sets = samples.leaks()["sets"]
    found, none, near = node(
        "leak",
        [
            ["findSet", [sets, ["self_check", "integer"]]],
            ["findSet", [sets[:2], ["self_check"]]],
            ["nearestSet", [sets[:2], ["self_check"]]],
        ],
    )
    assert found["removed"] == ["integer", "self_check"]
    assert none is None and near["removed"] == []
    values = sets[0]["values"]
    offsets = node("leak", [["swarm", [values, 0.012]]])[0]
    for (v, a), (w, b) in itertools.combinations(zip(values, offsets, strict=True), 2):
        assert a != b or abs(v - w) >= 0.012
