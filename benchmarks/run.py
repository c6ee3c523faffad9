"""Make the bench's own environment, where it lacks, and measure in it.

`python -m benchmarks.run [--only NAME] [--cycles N] [--publish]`. TRL lives in
`_build/bench-env` (or `DAPO_BENCH_ENV`), never beside the library; where it cannot be
had, one line says so and the rest is measured. `--publish` then copies all rows to
`dapo_lib/published/bench.csv`. Left out: measuring; see ratios.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pandas as pd

from dapo_lib.experiments import published
from dapo_lib.experiments.provenance import provenance

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "_build" / "bench.json"
PACKAGES = (
    "torch==2.13.0",
    "trl==1.16.0",
    "transformers==5.24.0",
    "accelerate==1.15.0",
    "pydantic>=2.7",
    "safetensors>=0.5",
    "pytest>=8",
)


def environment() -> Path:
    """The Python of an environment with TRL, made on first use."""
    given = os.environ.get("DAPO_BENCH_ENV")
    folder = Path(given or ROOT / "_build" / "bench-env")
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if not (given or ready.exists()):
        venv.create(folder, with_pip=True, clear=True)
        install = [python, "-m", "pip", "install", "--quiet", *PACKAGES]
        subprocess.run(install, check=True)
        ready.touch()
    if not python.exists():
        raise FileNotFoundError(python)
    return python


def publish() -> None:
    """The rows of `_build/bench.json` as a published result."""
    frame = pd.DataFrame(json.loads(OUT.read_text()))
    seconds = float(frame.groupby("job").cpu_seconds.first().sum())
    facts = {"seconds": seconds, "threads": 1, "packages": list(PACKAGES[:3])}
    frame = frame.drop(columns="cpu_seconds")
    published.save("bench", frame, provenance(**facts), digits=5)


def main() -> int:
    """Run the ratios in that environment, on one thread."""
    arguments = [a for a in sys.argv[1:] if a != "--publish"]
    try:
        python = environment()
    except (OSError, subprocess.CalledProcessError) as fault:
        python = Path(sys.executable)
        print(
            f"no environment with TRL ({fault}), its rows are left out; make one with "
            f"`pip install {' '.join(PACKAGES[:4])}` and set DAPO_BENCH_ENV",
            file=sys.stderr,
        )
    command = [python, "-W", "ignore", "-m", "benchmarks.ratios", *arguments]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    code = subprocess.run(command, cwd=ROOT, env=settings, check=False).returncode
    if code == 0 and "--publish" in sys.argv:
        publish()
    return code


if __name__ == "__main__":
    sys.exit(main())
