"""Write LICENSES.md: the licence of every package in the two locks.

python .github/licences.py        in an environment made from requirements.lock

What a package says of itself: its SPDX expression, else its licence field, else its
classifier. A package of other platforms that is not installed keeps its line. Left
out: packages of the extras (data, hf), which nobody gets unasked.
"""

from __future__ import annotations

import json
import re
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "LICENSES.md"
HEAD = """\
# Licences of what the book is built and run with

Made by `python .github/licences.py` from `requirements.lock` and `package-lock.json`.
Of these, the site carries MathJax, Noto Sans SC, the theme's files and Font Awesome.

| package | version | licence |
|---|---|---|
"""
_PIN = re.compile(r"^([A-Za-z0-9_.-]+)==([^ ;\\]+)", re.MULTILINE)


def pins(text: str) -> list[tuple[str, str]]:
    """(name, version) of every package of a lock.

    >>> pins("a-b==1.0 ; x == 'y' \\\\\\n    --hash=sha256:0")
    [('a-b', '1.0')]
    """
    return _PIN.findall(text)


def licence(name: str) -> str | None:
    """What an installed package says of its licence; None where it is not here."""
    try:
        about = metadata(name)
    except PackageNotFoundError:
        return None
    said = about.get("License-Expression") or about.get("License") or ""
    classes = [
        c.rpartition(" :: ")[2]
        for c in about.get_all("Classifier", [])
        if c.startswith("License ::") and not c.endswith("OSI Approved")
    ]
    short = " ".join(said.split())
    if not short or short == "UNKNOWN" or len(short) > 100:
        short = "; ".join(classes) or short[:60]  # some put the whole text there
    return short or None


def listed(text: str) -> dict[str, tuple[str, str]]:
    """name -> (version, licence) of the lines of LICENSES.md."""
    rows = [line.split(" | ") for line in text.splitlines() if " | " in line]
    return {n.strip("| "): (v, said.strip("| ")) for n, v, said in rows[1:]}


def npm() -> list[tuple[str, str, str]]:
    """The packages of package-lock.json, whose entries name their licence."""
    packages = json.loads((ROOT / "package-lock.json").read_text("utf-8"))["packages"]
    return [
        (f"{key.removeprefix('node_modules/')} (npm)", p["version"], p["license"])
        for key, p in packages.items()
        if key
    ]


def main() -> None:
    """Write the list; an unknown licence stops."""
    known = listed(TARGET.read_text("utf-8")) if TARGET.exists() else {}
    rows = []
    for name, version in pins((ROOT / "requirements.lock").read_text("utf-8")):
        said = licence(name) or known.get(name, ("", ""))[1]
        if not said:
            raise SystemExit(f"{name}: no licence known; install it here once")
        rows.append((name, version, said))
    lines = [f"| {name} | {version} | {said} |" for name, version, said in rows + npm()]
    TARGET.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"LICENSES.md: {len(lines)} packages")


if __name__ == "__main__":
    main()
