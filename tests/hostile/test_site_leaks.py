"""No artefact of the site says where, by whom or on what machine it was made."""

from __future__ import annotations

import getpass
import os
import re
import socket
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(os.environ.get("DAPO_SITE") or ROOT / "_build" / "site").resolve()
# a path of a machine: of this checkout, of a home, of a temporary folder
LOCAL = re.compile(
    rb"(?<![\w.:/~-])/(?:home|root|Users|tmp|var|work|mnt|private|opt)/[\w.~-]+"
    rb"|[A-Z]:\\\\Users\\\\|file:///"
)
ADDRESS = re.compile(
    rb"(?<![\w.])(?:10\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2}"
    rb"(?![\w.])"
)

pytestmark = pytest.mark.site


@pytest.fixture(scope="module")
def artefacts() -> list[Path]:
    """Every file of the site and of what is published with it."""
    if not (SITE / "index.html").exists():
        reason = "needs the built site: run `make book`"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return [p for p in SITE.rglob("*") if p.is_file()]


def names() -> re.Pattern[bytes]:
    """What this machine and its user are called, where that is no common word."""
    known = {socket.gethostname(), getpass.getuser(), os.environ.get("HOSTNAME", "")}
    common = {"root", "user", "runner", "ubuntu", "debian", "docker", "localhost"}
    telling = [n for n in known - common if len(n) > 5]
    words = [re.escape(n).encode() for n in telling] or [rb"(?!)"]
    return re.compile(rb"(?<!\w)(?:" + b"|".join(words) + rb")(?!\w)")


def test_the_patterns_can_match():
    assert LOCAL.search(b'"/home/me/x"') and LOCAL.search(b" /tmp/pytest-1")
    assert not LOCAL.search(b"https://example.org/home/x") and ADDRESS.search(
        b"10.0.0.1"
    )


def test_no_path_name_or_address_of_the_machine(artefacts):
    assert len(artefacts) > 100
    found = []
    for path in artefacts:
        data = path.read_bytes()
        # in the theme's own files, drawings are full of dotted numbers
        patterns = [LOCAL]
        if "_static" not in path.parts:
            patterns += [ADDRESS, names()]
        hits = [m[0] for m in (p.search(data) for p in patterns) if m]
        found += [f"{path.relative_to(SITE)}: {hit!r}" for hit in hits]
    assert found == []


def test_nothing_but_what_a_reader_needs(artefacts):
    kinds = {p.suffix for p in artefacts}
    assert not kinds & {".pickle", ".doctree", ".map", ".py", ".pyc", ".log", ".key"}
    hidden = [p for p in artefacts if p.name.startswith(".")]
    assert {p.name for p in hidden} <= {".nojekyll", ".buildinfo"}
