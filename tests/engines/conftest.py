"""Fixtures of the engines' tests: what the engines themselves said, where it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def oracles() -> Path:
    """Outputs of the engines' own code."""
    data = os.environ.get("DAPO_DATA")
    path = Path(data or ".") / "../oracles"
    if data and path.exists():
        return path
    reason = "needs ../oracles beside the data: set DAPO_DATA"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
