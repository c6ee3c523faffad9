"""Fixtures of the verifier's tests: public answer pairs, where the data is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def _folder(relative: str) -> Path:
    data = os.environ.get("DAPO_DATA")
    path = Path(data or ".") / relative
    if data and path.exists():
        return path
    reason = f"needs {relative} beside the data: set DAPO_DATA"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def pairs() -> Path:
    """Answer pairs of Math-Verify, MATH and verl."""
    return _folder("verifier")


@pytest.fixture
def oracles() -> Path:
    """Outputs of the peers' own code."""
    return _folder("../oracles")


@pytest.fixture
def solutions() -> Path:
    """Real model solutions of GSM8K with labels."""
    return _folder("gsm8k/example_model_solutions.jsonl")


@pytest.fixture
def aime() -> Path:
    """The official answers of AIME 2024."""
    return _folder("aime2024_answers.json")
