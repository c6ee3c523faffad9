"""Numbers that the peers' own code produced, as cases of tests.

The files lie in the folder that ``DAPO_ORACLES`` names, or else beside ``DAPO_DATA``.
Where they are absent the tests skip with a reason; in CI they fail.
"""

import json
import os
from functools import cache
from pathlib import Path

import pytest
import torch

NUMBERS = {"nan": float("nan"), "inf": float("inf"), "-inf": -float("inf")}
ABSENT = "oracle files not found: set DAPO_ORACLES, or DAPO_DATA to the folder beside"


def folder() -> Path | None:
    given = os.environ.get("DAPO_ORACLES")
    if given is None and "DAPO_DATA" in os.environ:
        given = Path(os.environ["DAPO_DATA"]).resolve().parent / "oracles"
    return Path(given) if given and Path(given).is_dir() else None


@cache
def read(name: str):
    return _decode(json.loads((folder() / f"{name}.json").read_text()))


def _decode(value):
    if isinstance(value, dict):
        return {k: _decode(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_decode(v) for v in value]
    return NUMBERS.get(value, value) if isinstance(value, str) else value


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "oracle(file, key, **only): a test for each case of a file"
    )


def pytest_generate_tests(metafunc):
    marker = metafunc.definition.get_closest_marker("oracle")
    if marker is None or "case" not in metafunc.fixturenames:
        return
    if folder() is None:
        skip = pytest.mark.skip(reason=ABSENT)
        in_ci = os.environ.get("CI") == "true"
        lone = pytest.param(None, marks=[] if in_ci else [skip], id="absent")
        metafunc.parametrize("case", [lone])
        return
    name, key = marker.args
    wanted = marker.kwargs.items()
    cases = [c for c in read(name)[key] if all(c.get(k) == v for k, v in wanted)]
    metafunc.parametrize("case", cases, ids=[_name(i, c) for i, c in enumerate(cases)])


def _name(index: int, case: dict) -> str:
    words = [str(v) for v in case.values() if isinstance(v, str | int | bool)]
    return "-".join([str(index), *words[:3]])


@pytest.fixture(autouse=True)
def _present():
    if folder() is None and os.environ.get("CI") == "true":
        pytest.fail(ABSENT)


@pytest.fixture
def oracle():
    """Read an oracle file by its name."""
    if folder() is None:
        pytest.skip(ABSENT)
    return read


@pytest.fixture
def batch(oracle):
    """The tensors of an input of verl_policy_loss.json, ready for `policy_loss`.

    The peers accept log-probabilities above 0; we refuse them. Only the ratio enters a
    loss, so both are shifted down, token by token, by what is above 0.
    """

    def tensors(name: str):
        data = oracle("verl_policy_loss")["inputs"][name]
        new, old, advantage, mask = (
            torch.tensor(data[k], dtype=torch.float64)
            for k in ("logp", "old_logp", "adv", "mask")
        )
        above = torch.maximum(new, old).clamp(min=0)
        return (new - above).requires_grad_(), old - above, advantage, mask

    return tensors


@pytest.fixture
def close():
    """Equal within a tolerance, relative above 1; NaN only where NaN is expected."""

    def check(ours, theirs, tolerance: float):
        ours = torch.as_tensor(ours, dtype=torch.float64).detach()
        theirs = torch.as_tensor(theirs, dtype=torch.float64)
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)

    return check
