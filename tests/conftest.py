"""Fixtures for more than one folder of tests: the GSM8K data, where it is."""

from __future__ import annotations

import os

import pytest

from dapo_lib.data.gsm8k import Data, resolve_data


@pytest.fixture(scope="session")
def gsm8k() -> Data:
    """GSM8K through DAPO_DATA; skips without it, and fails where CI=true."""
    if not os.environ.get("DAPO_DATA"):
        reason = "needs GSM8K: set DAPO_DATA to the folder that holds gsm8k/"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return resolve_data()
