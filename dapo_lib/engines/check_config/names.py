"""The option names of an engine: from the installed package, else a committed table.

The files of a package are parsed, never imported. This module run as a program with
an engine, its version and the folders of unpacked wheels rewrites a table.
Left out: types and help texts.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import json
import sys
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import yaml

Engine = Literal["trl", "verl"]
TABLES = {"trl": "trl-1.16.0.json", "verl": "verl-0.9.1.json"}
VERL_CONFIG = "trainer/config/_generated_ppo_trainer.yaml"
# (package, file, class): the later override the earlier
TRL_CLASSES = (
    ("transformers", "training_args.py", "TrainingArguments"),
    ("trl", "trainer/base_config.py", "_BaseConfig"),
    ("trl", "trainer/grpo_config.py", "GRPOConfig"),
)


@dataclass(frozen=True)
class Names:
    """Every option of an engine with its default, and where the list comes from.

    `own` are the options that only this engine's GRPO configuration has.
    """

    engine: Engine
    version: str
    source: Literal["installed", "table"]
    defaults: dict[str, Any]
    own: frozenset[str]

    def knows(self, key: str) -> bool:
        """Whether the key is an option, a group of options, or inside a free-form one.

        >>> names("verl").knows("algorithm.filter_groups.enable")
        True
        >>> names("verl").knows("algorithm.filter_group.enable")
        False
        """
        if key in self.defaults or any(k.startswith(key + ".") for k in self.defaults):
            return True
        parts = key.split(".")
        above = (".".join(parts[:i]) for i in range(1, len(parts)))
        return any(self.defaults.get(a, 0) in ({}, None) for a in above)


@cache
def names(engine: Engine) -> Names:
    """The names of the installed engine where there is one, else the table's."""
    return installed(engine) or from_table(engine)


def from_table(engine: Engine) -> Names:
    """The committed list, made by this module from the wheel of its version."""
    path = files(__package__) / "tables" / TABLES[engine]
    table = json.loads(path.read_text(encoding="utf-8"))
    own = frozenset(table["own"])
    return Names(engine, table["version"], "table", table["defaults"], own)


def installed(engine: Engine) -> Names | None:
    """The names of the engine in this environment; None where it cannot be read."""
    folders = {}
    for package in ("trl", "transformers") if engine == "trl" else ("verl",):
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            return None
        folders[package] = Path(next(iter(spec.submodule_search_locations)))
    try:
        defaults, own = READERS[engine](folders)
        version = importlib.metadata.version(engine)
    except (
        OSError,
        SyntaxError,
        yaml.YAMLError,
        importlib.metadata.PackageNotFoundError,
    ):
        return None
    return Names(engine, version, "installed", defaults, frozenset(own))


def _read_trl(folders: dict[str, Path]) -> tuple[dict[str, Any], set[str]]:
    defaults: dict[str, Any] = {}
    own: set[str] = set()
    for package, file, name in TRL_CLASSES:
        fields = _fields(folders[package] / file, name)
        defaults |= fields
        own = set(fields)
    return defaults, own


def _fields(path: Path, name: str) -> dict[str, Any]:
    """The annotated fields of one class and their literal defaults."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name]
    body = found[0].body if found else []
    fields = [n for n in body if isinstance(n, ast.AnnAssign)]
    return {
        n.target.id: _default(n.value) for n in fields if isinstance(n.target, ast.Name)
    }


def _default(node: ast.expr | None) -> Any:
    if isinstance(node, ast.Call):
        given = {k.arg: k.value for k in node.keywords}
        node = given.get("default")
    try:
        value = ast.literal_eval(node) if node is not None else None
    except ValueError:
        return None
    return value if isinstance(value, bool | int | float | str | None) else None


def _read_verl(folders: dict[str, Path]) -> tuple[dict[str, Any], set[str]]:
    text = (folders["verl"] / VERL_CONFIG).read_text(encoding="utf-8")
    defaults = flatten(yaml.safe_load(text))
    kept = {k: v for k, v in defaults.items() if not k.endswith("_target_")}
    return kept, set(kept)


READERS = {"trl": _read_trl, "verl": _read_verl}


def flatten(tree: Any, limit: int = 20_000) -> dict[str, Any]:
    """Nested mappings as dotted keys; raises ``ValueError`` past `limit` entries.

    >>> flatten({"a": {"b": 1, "c": {}}})
    {'a.b': 1, 'a.c': {}}
    """
    flat: dict[str, Any] = {}
    todo: list[tuple[str, Any]] = [("", tree)]
    steps = 0
    while todo:
        prefix, node = todo.pop()
        steps += 1
        if steps > limit:
            raise ValueError(f"more than {limit} entries")
        if isinstance(node, dict) and (node or not prefix):
            start = f"{prefix}." if prefix else ""
            todo += [(f"{start}{k}", v) for k, v in reversed(node.items())]
        else:
            flat[prefix] = node
    return flat


def _write(engine: Engine, version: str, folders: list[str]) -> None:
    found = {Path(f).name: Path(f) for f in folders}
    defaults, own = READERS[engine](found)
    simple = {
        k: v if isinstance(v, bool | int | float | str | None) or v == {} else "..."
        for k, v in sorted(defaults.items())
    }
    listed = sorted(own) if engine == "trl" else []
    table = {"engine": engine, "version": version, "own": listed, "defaults": simple}
    path = Path(__file__).parent / "tables" / TABLES[engine]
    path.write_text(json.dumps(table, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _write(sys.argv[1], sys.argv[2], sys.argv[3:])  # type: ignore[arg-type]
