"""An environment of its own for every peer, made once from the package index.

Only what the adapters import is installed, the peer itself without its dependencies:
none of its functions that we call needs a GPU, an inference server or a cluster.
Left out: upgrades. A changed list makes the environment anew.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dapo_lib.errors import DapoError
from dapo_lib.files import canonical, digest, write_bytes

ADAPTERS = Path(__file__).with_name("adapters")
TORCH = "torch==2.13.0"  # on its own first: what depends on it then keeps this build


@dataclass(frozen=True)
class Peer:
    """One system: its adapter, and what its environment holds (None: this one)."""

    name: str
    adapter: str
    package: str | None = None
    needs: tuple[str, ...] = ()


PEERS = (
    Peer("dapo_lib", "dapo_lib.conformance.adapters.ours"),
    Peer(
        "verl",
        str(ADAPTERS / "verl.py"),
        "verl==0.9.1",
        (
            "numpy==2.4.6",
            "tensordict==0.15.3",
            "transformers==5.24.0",
            "omegaconf",
            "hydra-core",
            "codetiming",
            "pandas",
            "datasets",
            "ray",
            "packaging",
            "orjson",
            "pillow",
            "aiohttp",
        ),
    ),
    Peer(
        "trl",
        str(ADAPTERS / "trl.py"),
        "trl==1.16.0",
        (
            "transformers==5.24.0",
            "accelerate",
            "datasets",
            "math-verify==0.9.0",
            "joblib",
            "pytest",
            "hypothesis",
        ),
    ),
    Peer(
        "openrlhf",
        str(ADAPTERS / "openrlhf.py"),
        "openrlhf==0.11.2",
        ("numpy==2.4.6", "tqdm", "packaging", "sympy", "pylatexenc"),
    ),
)


def prepare(
    peer: Peer, folder: Path, say: Callable[[str], object] = lambda text: None
) -> str:
    """The Python of a peer's environment under `folder`, created where it is missing.

    Raises ``DapoError`` with pip's last words where that fails.
    """
    if peer.package is None:
        return sys.executable
    place = folder / peer.package.replace("==", "-")
    python, stamp = place / "bin" / "python", place / ".ready"
    wanted = digest(canonical([TORCH, peer.package, *peer.needs]))
    if stamp.is_file() and stamp.read_text() == wanted:
        return str(python)
    say(f"environment of {peer.package}: {place} (minutes, once)")
    if not python.exists():
        _call(peer, [sys.executable, "-m", "venv", str(place)])
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    _call(peer, [*pip, TORCH])
    _call(peer, [*pip, TORCH, *peer.needs])
    _call(peer, [*pip, "--no-deps", peer.package])
    write_bytes(stamp, wanted.encode())
    return str(python)


def _call(peer: Peer, command: list[str]) -> None:
    clean = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    done = subprocess.run(command, capture_output=True, text=True, env=clean)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        errors = [line for line in lines if not line.startswith("WARNING")]
        words = " | ".join(errors[-3:]) or f"exit {done.returncode}"
        raise DapoError(f"environment of {peer.package}: pip failed: {words}")
