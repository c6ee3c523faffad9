"""A `GRPOConfig(...)` call in Python, read from the syntax tree and never executed.

Left out: values that need a run. Literals, names bound once to a literal, and integer
arithmetic are read; anything else is unknown, and the report says so.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from dapo_lib.engines.check_config.source import Setting, Source, Unknown, not_one
from dapo_lib.errors import BadInput

OVERLONG = "get_soft_overlong_punishment"
OVERLONG_ARGUMENTS = ("max_completion_len", "soft_punish_cache")
OPERATORS = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Div: lambda a, b: a / b,
}


def read(text: str, path: Path) -> Source:
    """The last GRPOConfig call of a program. Raises ``BadInput`` without one."""
    try:
        return _read(ast.parse(text), path)
    except BadInput:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        where = f" at line {line}" if line else ""
        raise not_one(path, f"not Python{where}") from error


def _read(tree: ast.Module, path: Path) -> Source:
    names = _constants(tree)
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    configs = [n for n in calls if _called(n) == "GRPOConfig"]
    if not configs:
        raise not_one(path, "no GRPOConfig(...) call")
    source = Source("trl", "python")
    last = max(configs, key=lambda n: n.lineno)
    if len(configs) > 1:
        source.notes.append(
            f"{len(configs)} GRPOConfig calls; line {last.lineno} is checked"
        )
    _keywords(last, names, source)
    for call in calls:
        name = _called(call)
        if name == OVERLONG:
            source.overlong = _arguments(call, names)
        elif name.endswith("Trainer"):
            source.trainer = name
    return source


def _called(call: ast.Call) -> str:
    target = call.func
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else ""


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Names assigned exactly once in the program, and what is assigned."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign):
            if isinstance(node.target, ast.Name) and node.value is not None:
                times = 2 if isinstance(node, ast.AugAssign) else 1
                found.setdefault(node.target.id, []).extend([node.value] * times)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _keywords(call: ast.Call, names: dict[str, ast.expr], source: Source) -> None:
    if call.args:
        source.notes.append("positional arguments of GRPOConfig are not read")
    for keyword in call.keywords:
        if keyword.arg is not None:
            value = _value(keyword.value, names)
            source.settings[keyword.arg] = Setting(value, keyword.value.lineno)
            continue
        spread = _value(keyword.value, names)
        if isinstance(spread, dict):
            line = keyword.value.lineno
            new = {str(k): Setting(v, line) for k, v in spread.items()}
            source.settings.update(new)
        else:
            source.notes.append(
                f"**{ast.unparse(keyword.value)[:40]} is only known to a run"
            )


def _arguments(call: ast.Call, names: dict[str, ast.expr]) -> dict[str, Any]:
    given = {
        name: _value(node, names)
        for name, node in zip(OVERLONG_ARGUMENTS, call.args, strict=False)
    }
    named = {k.arg: _value(k.value, names) for k in call.keywords if k.arg}
    return {name: None for name in OVERLONG_ARGUMENTS} | given | named


def _value(node: ast.expr, names: dict[str, ast.expr], depth: int = 0) -> Any:
    """The value of a literal, of a name bound to one, or of plain arithmetic."""
    unknown = Unknown(ast.unparse(node)[:60])
    if depth > 20:
        return unknown
    if isinstance(node, ast.Name):
        bound = names.get(node.id)
        return unknown if bound is None else _value(bound, names, depth + 1)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        left = _value(node.left, names, depth + 1)
        right = _value(node.right, names, depth + 1)
        return _computed(node, left, right, unknown)
    if isinstance(node, ast.Call) and _called(node) == "dict" and not node.args:
        return {k.arg: _value(k.value, names, depth + 1) for k in node.keywords}
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return unknown


def _computed(node: ast.BinOp, left: Any, right: Any, unknown: Unknown) -> Any:
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    if not numbers or max(abs(left), abs(right)) > 1e15:
        return unknown
    try:
        return OPERATORS[type(node.op)](left, right)
    except ZeroDivisionError:
        return unknown
