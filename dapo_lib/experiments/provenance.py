"""Where a number comes from: commit, versions, code hash, data, seconds.

Left out: hosts, users and paths. A record must be publishable as it is.
"""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dapo_lib.files import digest

ROOT = Path(__file__).resolve().parents[1]
# rooms whose code cannot change a training result
_FACES = ("cli", "publish", "widgets", "labels", "engines", "conformance", "published")
_FACE_FILES = ("plots.py", "check.py")


@cache
def code_hash() -> str:
    """SHA-256 over the library's sources that can change a training result."""
    parts = []
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT)
        if name.parts[0] in _FACES or name.name in _FACE_FILES:
            continue
        parts.append(f"{name.as_posix()} {digest(path.read_bytes())}")
    return digest("\n".join(parts).encode())


@cache
def commit() -> str:
    """The git commit of the sources, or "unknown" outside a checkout."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that compute."""
    found = {"python": platform.python_version()}
    for package in ("dapo-book", "numpy", "torch", "pandas"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


def provenance(**facts: Any) -> dict[str, Any]:
    """Commit, versions, code hash, and the caller's facts (seeds, seconds, data)."""
    return {"commit": commit(), "versions": versions(), "code": code_hash(), **facts}
