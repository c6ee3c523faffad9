"""The map *ours, verl, TRL* (map.yml), read and applied to one run configuration.

A cell's text, a condition and a derived number are computed here and nowhere else; the
widget's twin in JavaScript reads the same data.
Left out: files and layout; see render.py and export.py.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import yaml

from dapo_lib.errors import BadInput
from dapo_lib.experiments.config import Run

Engine = Literal["trl", "verl"]
ENGINES: tuple[Engine, ...] = ("verl", "trl")
BARE = re.compile(r"[A-Za-z0-9_./~@:+-]+")  # text that neither shell nor Hydra reads
WORDS = re.compile(r"(?i)true|false|null|none|inf|nan")


@dataclass(frozen=True)
class Option:
    """One option of an engine: its key, our key, the plain value, Hydra's mark."""

    key: str
    ours: str
    value: Any
    mark: str = ""


@dataclass(frozen=True)
class Limit:
    """What an engine does not do as configured: `lost` stops an export."""

    id: str
    engine: Engine
    level: Literal["lost", "differs"]


@cache
def table() -> dict[str, Any]:
    """The whole map as plain data, for renderers, pages and widgets.

    >>> table()["rows"][0]["ours"], table()["tested"]["verl"]
    ('algorithm.eps_low', '0.9.1')
    """
    text = (files(__package__) / "map.yml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


def values(run: Run) -> dict[str, Any]:
    """Our settings by dotted name, and the derived numbers by theirs.

    Raises ``BadInput`` where a batch cannot be cut evenly.

    >>> from dapo_lib.experiments.config import load_run
    >>> found = values(load_run("dapo-32b"))
    >>> found["prompts_per_update"], found["updates"], found["accumulation"]
    (32, 10240, 4)
    """
    known = run.flat()
    for name, rule in table()["derived"].items():
        known[name] = _derive(name, rule, known)
    return known


def _derive(name: str, rule: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
    if "item" in rule:
        whole, at = rule["item"]
        return known[whole][at]
    if "sum" in rule:
        return sum(known.get(x, x) for x in rule["sum"])
    top = math.prod(known[x] for x in rule["times"])
    below = math.prod(known[x] for x in rule.get("over", ()))
    if rule.get("up"):
        return -(-top // below)
    if top % below:
        parts = ", ".join(f"{x}={known[x]}" for x in (*rule["times"], *rule["over"]))
        raise BadInput(
            f"{name} is {top} / {below}, not a whole number ({parts}); choose sizes "
            "that divide"
        )
    return top // below


def holds(when: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """Whether every key of a condition is satisfied.

    >>> holds({"a": [1, 2], "b": {"above": 0}}, {"a": 1, "b": 0.5})
    True
    >>> holds({"a": {"given": False}}, {"a": 0})
    False
    """
    return all(_one(rule, known[key], known) for key, rule in when.items())


def _one(rule: Any, value: Any, known: Mapping[str, Any]) -> bool:
    if isinstance(rule, list):
        return value in rule
    if "given" in rule:
        return (value is not None) == rule["given"]
    if value is None:
        return False
    if "above" in rule:
        return value > known.get(rule["above"], rule["above"])
    return value < known.get(rule["below"], rule["below"])


def flags(known: Mapping[str, Any]) -> dict[str, bool]:
    """The conditions that templates ask for, by name."""
    return {name: holds(when, known) for name, when in table()["flags"].items()}


def options(run: Run, engine: Engine) -> list[Option]:
    """The engine's options for this run, in the map's order, then the run's `extra`.

    A value that the engine has no word for is left out: it is in `limits`.

    >>> from dapo_lib.experiments.config import load_run
    >>> [o.value for o in options(load_run("dapo-32b"), "trl") if o.key == "loss_type"]
    ['dapo']
    """
    known = values(run)
    found = [o for row in table()["rows"] for o in _cells(row, engine, known)]
    own = run.extra.get(engine, {})
    kept = [o for o in found if o.key not in own]
    added = [Option(k.lstrip("+"), "extra", v, _mark(k)) for k, v in own.items()]
    return kept + added


def _mark(key: str) -> str:
    return key[: len(key) - len(key.lstrip("+"))]


def _cells(row: Mapping, engine: Engine, known: Mapping[str, Any]) -> Iterator[Option]:
    for cell in row[engine]:
        if not holds(cell.get("when", {}), known):
            continue
        value = cell["is"] if "is" in cell else known[cell.get("of", row["ours"])]
        if "values" in cell:
            if value not in cell["values"]:
                continue
            value = cell["values"][value]
        if value is not None:
            yield Option(cell["key"], row["ours"], value, "+" if "add" in cell else "")


def limits(run: Run, engine: Engine) -> list[Limit]:
    """What this engine would not do as the run asks, lost mechanisms first.

    >>> from dapo_lib.experiments.config import load_run
    >>> run = load_run("dapo-32b", ["algorithm.overlong=filter"])
    >>> [x.id for x in limits(run, "verl") if x.level == "lost"]
    ['overlong_filter']
    """
    known = values(run)
    found = [
        Limit(x["id"], x["engine"], x["level"])
        for x in table()["limits"]
        if x["engine"] == engine and holds(x["when"], known)
    ]
    return sorted(found, key=lambda x: x.level != "lost")


def number(value: float) -> str:
    """A number as text that YAML, Hydra, Python and JavaScript all read alike.

    >>> number(1e-6), number(0.28), number(16), number(1.0), number(1e9)
    ('1.0e-6', '0.28', '16', '1', '1000000000')
    """
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    text = repr(float(value))
    if 1e-4 <= abs(value) < 1e15:
        return text
    head, _, power = f"{value:e}".partition("e")
    shortest = text.partition("e")[0] if "e" in text else head.rstrip("0")
    shortest = shortest if "." in shortest else f"{shortest}.0"
    return f"{shortest}e{int(power)}" if int(power) < 0 else f"{shortest}e+{int(power)}"


def python_text(value: Any) -> str:
    """A value as a Python literal (strings in double quotes).

    >>> python_text([0.9, 0.999]), python_text("a"), python_text(True)
    ('[0.9, 0.999]', '"a"', 'True')
    """
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(python_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def hydra_text(value: Any) -> str:
    """A value as it stands after `=` in a Hydra override, before the shell.

    Raises ``BadInput`` on text that no quoting carries through both.

    >>> hydra_text([0.9, 0.999]), hydra_text("data/x.parquet"), hydra_text("a b")
    ('[0.9,0.999]', 'data/x.parquet', '"a b"')
    """
    if isinstance(value, bool) or value is None:
        return {True: "True", False: "False", None: "null"}[value]
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, list):
        return "[" + ",".join(map(hydra_text, value)) + "]"
    text = str(value)
    if BARE.fullmatch(text) and not WORDS.fullmatch(text) and not _numeric(text):
        return text
    if re.search(r"""['"\\$`\n]""", text):
        raise BadInput(f"{text!r}: quotes, $, ` and line ends cannot be handed to verl")
    return f'"{text}"'


def _numeric(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
