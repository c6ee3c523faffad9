"""Make the bench's own environment, where it lacks, and measure in it.

`python -m benchmarks.run [--only NAME] [--cycles N]`. TRL lives in `_build/bench-env`
(or `DAPO_BENCH_ENV`), never beside the library. Left out: measuring; see ratios.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    "torch==2.13.0",
    "trl==1.16.0",
    "transformers==5.24.0",
    "accelerate==1.15.0",
    "pydantic>=2.7",
    "safetensors>=0.5",
)


def environment() -> Path:
    """The Python of an environment with TRL, made on first use."""
    folder = Path(os.environ.get("DAPO_BENCH_ENV") or ROOT / "_build" / "bench-env")
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if not (ready.exists() or "DAPO_BENCH_ENV" in os.environ):
        venv.create(folder, with_pip=True, clear=True)
        install = [python, "-m", "pip", "install", "--quiet", *PACKAGES]
        subprocess.run(install, check=True)
        ready.touch()
    return python


def main() -> int:
    """Run the ratios in that environment, on one thread."""
    command = [environment(), "-W", "ignore", "-m", "benchmarks.ratios", *sys.argv[1:]]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=settings, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
