"""What a configuration file says: settings with their lines, whatever it is written in.

Nothing is executed: Python is parsed to a syntax tree, YAML read by the safe loader,
shell lines split into words with their own variables filled in.
Left out: files that a configuration includes, and the shell's environment.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from dapo_lib.engines.check_config.names import Engine, flatten, names
from dapo_lib.errors import BadInput

MAX_BYTES = 2_000_000


class Unknown:
    """A value that only a running program would know, with its text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"<{self.text}>"


@dataclass(frozen=True)
class Setting:
    """One value, where it stands, and Hydra's mark before its key (`+`, `++`, `~`)."""

    value: Any
    line: int | None = None
    mark: str = ""


@dataclass
class Source:
    """All settings of one file, by key; `overlong` is TRL's penalty call, `trainer`
    the class that Python code trains with."""

    engine: Engine
    form: Literal["python", "yaml", "json", "overrides"]
    settings: dict[str, Setting] = field(default_factory=dict)
    overlong: dict[str, Any] | None = None
    trainer: str | None = None
    notes: list[str] = field(default_factory=list)


def read(path: Path) -> Source:
    """The settings of a file. Raises ``BadInput`` where it is not a configuration."""
    from dapo_lib.engines.check_config import python_source, shell

    text = _text(path)
    suffix = path.suffix.lower()
    if suffix == ".py":
        return python_source.read(text, path)
    if suffix in (".yaml", ".yml", ".json"):
        return _tree(_parsed(text, path, suffix), path, suffix)
    return shell.read(text, path)


def not_one(path: Path, why: str) -> BadInput:
    """The one error of a file that is not a configuration."""
    return BadInput(
        f"{path}: {why}; expected a TRL GRPOConfig (.py, .yaml, .json) or verl "
        "overrides (.sh, .yaml, .json, one key=value a line)"
    )


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}") from error
    if len(data) > MAX_BYTES:
        raise not_one(path, f"{len(data)} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_one(path, "not UTF-8 text") from error


def _parsed(text: str, path: Path, suffix: str) -> Any:
    try:
        return json.loads(text) if suffix == ".json" else yaml.safe_load(text)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else getattr(error, "lineno", None)
        where = f" at line {line}" if line else ""
        raise not_one(path, f"not {suffix[1:].upper()}{where}") from error


def _tree(tree: Any, path: Path, suffix: str) -> Source:
    from dapo_lib.engines.check_config import shell

    form: Literal["yaml", "json"] = "json" if suffix == ".json" else "yaml"
    if isinstance(tree, list) and all(isinstance(item, str) for item in tree):
        return shell.read("\n".join(tree), path)
    if not isinstance(tree, dict) or not tree:
        raise not_one(path, "no mapping of options")
    try:
        flat = flatten(tree)
    except ValueError as error:
        raise not_one(path, str(error)) from error
    roots = {key.split(".")[0] for key in names("verl").defaults}
    if any("." in key and key.split(".")[0] in roots for key in flat):
        engine: Engine = "verl"
    elif names("trl").own & set(tree):
        engine = "trl"
        flat = {str(k): v for k, v in tree.items()}
    else:
        raise not_one(path, "no option of TRL's GRPOConfig or of verl")
    return Source(engine, form, {k: Setting(scalar(v)) for k, v in flat.items()})


def scalar(value: Any) -> Any:
    """Text as the number, boolean or null that it spells; other values as they are.

    >>> scalar("1e-6"), scalar("True"), scalar("null"), scalar("acc")
    (1e-06, True, None, 'acc')
    """
    if not isinstance(value, str):
        return value
    words = {"true": True, "false": False, "null": None, "none": None}
    if value.strip().lower() in words:
        return words[value.strip().lower()]
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
