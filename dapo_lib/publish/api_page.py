"""The API reference: which modules belong to which page, and their text for Sphinx.

autodoc reads the docstrings (English on both sites); headings and introductions are the
pages' own (book/*/api*.md). Left out: the command line (its own `--help` documents it),
the book's build (publish/), and what answers for other systems (conformance/adapters).
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from functools import cache
from types import ModuleType

import dapo_lib
from dapo_lib.files import write_bytes
from dapo_lib.publish.layout import Layout

# a page -> the modules, or packages with all below them, that it shows, in this order
ROOMS: dict[str, tuple[str, ...]] = {
    "mechanisms": (
        "rollout",
        "advantage",
        "objective",
        "overlong",
        "sampling",
        "kl",
        "metrics",
        "algorithm",
        "train",
        "checkpoint",
        "errors",
        "files",
    ),
    "candidate": ("candidate",),
    "language": ("lm",),
    "data": ("verifier", "grading", "data"),
    "experiments": ("experiments",),
    "tools": ("check", "show", "live", "plots", "diagrams", "widgets", "labels"),
    "checks": ("conformance", "engines"),
}
LEFT_OUT = ("cli", "publish", "conformance.adapters", "conformance.rows")
_LITERAL = re.compile(r"(``.+?``|:[\w:]+:`[^`]+`|`[^`\n]+`)", re.S)


def write(layout: Layout) -> None:
    """Write `_build/generated/api-<room>.md`, and the list of all modules."""
    for room in ROOMS:
        write_bytes(layout.generated / f"api-{room}.md", page(room).encode())
    write_bytes(layout.generated / "api-modules.md", overview().encode())


@cache
def modules() -> tuple[str, ...]:
    """Every module of the library that can be imported here, by full name.

    What needs the package of an optional extra that is absent is passed over.
    """
    found = []
    for entry in pkgutil.walk_packages(dapo_lib.__path__, "dapo_lib."):
        name = entry.name.removeprefix("dapo_lib.")
        hidden = any(part.startswith("_") for part in name.split("."))
        if hidden or name.endswith("conftest") or _under(name, LEFT_OUT):
            continue
        try:
            importlib.import_module(entry.name)
        except ImportError:
            continue
        found.append(entry.name)
    return tuple(found)


def room_modules(room: str) -> list[str]:
    """The modules of a page that have public functions or classes, in its order.

    >>> room_modules("mechanisms")[:2]
    ['dapo_lib.rollout', 'dapo_lib.advantage']
    """
    chosen = []
    for prefix in ROOMS[room]:
        known = [m for m in modules() if _under(m.removeprefix("dapo_lib."), (prefix,))]
        chosen += [m for m in known if public(importlib.import_module(m))]
    return chosen


def public(module: ModuleType) -> list[str]:
    """Names of the documented functions and classes that a module defines itself.

    >>> from dapo_lib import overlong
    >>> "soft_overlong" in public(overlong)
    True
    """
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__ == module.__name__
        and value.__doc__
    ]


def page(room: str) -> str:
    """The modules of a page as MyST: a heading each, then autodoc."""
    return "\n\n".join(_section(name) for name in room_modules(room)) + "\n"


def overview() -> str:
    """Every documented module, one line each, linked to its section."""
    lines = []
    for name in (m for room in ROOMS for m in room_modules(room)):
        first = (inspect.getdoc(importlib.import_module(name)) or "").split("\n\n")[0]
        lines.append(f"* [`{name}`](#{_anchor(name)}): {' '.join(first.split())}")
    return "\n".join(lines) + "\n"


def tidy(lines: list[str]) -> list[str]:
    """A docstring as RST that cannot warn: doctests, literals and plain text.

    >>> tidy(["`a` times *b*, [B, T]:", "", ">>> a * b"])
    ['``a`` times \\\\*b\\\\*, [B, T]:', '', '>>> a * b']
    """
    blocks = "\n".join(lines).split("\n\n")
    return "\n\n".join(_block(block) for block in blocks).split("\n")


def _block(block: str) -> str:
    """One paragraph; its text starts at one margin, or RST reads a quotation in it."""
    if block.lstrip().startswith((">>>", "..")):
        return block
    rows = [row.strip() for row in block.split("\n")]
    if not any(row.startswith(("* ", "- ")) for row in rows):
        block = "\n".join(rows)
    parts = _LITERAL.split(block)
    return "".join(_code(p) if i % 2 else _escape(p) for i, p in enumerate(parts))


def _code(text: str) -> str:
    """Single backticks are code in these docstrings, not RST's title references."""
    if text.startswith(":"):
        return text
    inner = text.strip("`").strip()  # a literal may not begin or end with a space
    return f"``{inner}``" if inner else ""


def _escape(text: str) -> str:
    """Every sign that RST could take for markup, but for a list's bullet."""
    text = re.sub(r"\\(?!\s)", r"\\\\", text)
    text = re.sub(r"([|`])", r"\\\1", text)
    text = re.sub(r"(?m)(?<!^)\*|\*(?! )", r"\\*", text)
    text = re.sub(r"_+(?!\w)", lambda m: r"\_" * len(m[0]), text)
    return re.sub(r"::$", ":", text)


def _section(name: str) -> str:
    lines = [f"({_anchor(name)})=", f"## `{name}`", "", "```{eval-rst}"]
    lines += [f".. automodule:: {name}", "   :members:", "   :ignore-module-all:"]
    lines.append("```")
    return "\n".join(lines)


def _anchor(name: str) -> str:
    return "api-" + re.sub(r"\W|_", "-", name.removeprefix("dapo_lib."))


def _under(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == p or name.startswith(f"{p}.") for p in prefixes)
