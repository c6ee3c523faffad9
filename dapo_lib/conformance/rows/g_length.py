"""Rows G: the length penalty, end tokens, truncation."""

from __future__ import annotations

from dapo_lib.conformance.rows.row import RAISES, Case, Convention, Row


def _penalty(lengths, l_max, l_cache, right, *conventions) -> Case:
    given = {"lengths": lengths, "l_max": l_max, "l_cache": l_cache}
    return Case("penalty", given, right, 1e-5, conventions)


def _response(tokens, eos_ids, pad_id, right, *conventions) -> Case:
    given = {"tokens": tokens, "eos_ids": eos_ids, "pad_id": pad_id}
    return Case("response", given, right, conventions=conventions)


def _shaped(correct, length, right, **given) -> Case:
    given = {"correct": correct, "length": length, "l_max": 20, "l_cache": 4, **given}
    return Case("shaped_reward", given, right)


_REFUSED = Convention("cache_of_0_refused", RAISES)
_OFF = Convention("cache_of_0_is_off", [0.0, 0.0])
ROWS = (
    Row("G01", "verl#2107", (_penalty([0], 20, 24, RAISES),)),
    Row(
        "G02",
        "verl#3855, verl#3856",
        (_penalty([16384, 16385, 20480], 20480, 4096, [0.0, -1 / 4096, -1.0]),),
    ),
    Row(
        "G03",
        "ms-swift, verl, AReaL and NeMo-RL sources",
        (_penalty([140], 100, 20, [-1.0]), _penalty([24576], 20480, 4096, [-1.0])),
    ),
    Row(
        "G04",
        "paper section 4.1 against Eq 13",
        (_penalty([14336], 20480, 4096, [0.0]),),
    ),
    Row(
        "G06",
        "TRL allows a cache of 0",
        (_penalty([20, 21], 20, 0, [0.0, -1.0], _REFUSED, _OFF),),
    ),
    Row("G07", "verl#4268", (_shaped(False, 18, -1.5), _shaped(True, 18, 0.5))),
    Row(
        "G09",
        "TRL#7039",
        (_response([5, 3, 0, 0], [2, 3], 0, {"truncated": False}),),
    ),
    Row(
        "G10",
        "ROLL source (max_len_mask)",
        (
            _response([5, 6, 7, 1], [1], 0, {"truncated": False}),
            _response([5, 6, 7, 8], [1], 0, {"truncated": True}),
        ),
    ),
    Row(
        "G11",
        "TRL#4970, TRL#6357, TRL#2708, ROLL#304, MemGen#33",
        (
            _response([5, 6, 1, 0], [1], 0, {"mask": [1, 1, 1, 0]}),
            _response(
                [5, 6, 1, 1],
                [1],
                1,
                {"mask": [1, 1, 1, 0]},
                Convention("pad_equal_eos_refused", RAISES),
            ),
        ),
    ),
    Row(
        "G12",
        "UniRL#19, SimpleTIR#11",
        (_shaped(True, 20, 0.0, truncated=True),),
    ),
)
