"""Runs the coverage-guided fuzzer for two minutes where atheris is installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SECONDS = 120


@pytest.mark.soak
def test_the_fuzzer_finds_nothing(tmp_path):
    if importlib.util.find_spec("atheris") is None:
        pytest.skip("needs atheris: pip install atheris")
    command = [
        *(sys.executable, str(HERE / "verifier_fuzz.py"), f"-max_total_time={SECONDS}"),
        *("-max_len=4096", f"-dict={HERE / 'verifier.dict'}", str(tmp_path)),
    ]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
