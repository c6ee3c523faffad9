"""Where transformers is not installed here, its tests run in the bench's environment.

Among them: uncompacted decoding equals ``generate`` token for token.
"""

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.run import ROOT, environment

HERE = Path(__file__).with_name("test_huggingface.py")


@pytest.mark.engines
def test_the_tests_of_hugging_face_models_pass_beside_transformers():
    options = ["-q", "--noconftest", "-c", os.devnull, "-p", "no:cacheprovider"]
    done = subprocess.run(
        [environment(), "-m", "pytest", *options, HERE],
        cwd=HERE.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "passed" in done.stdout and "skipped" not in done.stdout
