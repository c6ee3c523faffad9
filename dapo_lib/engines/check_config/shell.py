"""verl overrides in a shell script or a list: words `key=value`, variables filled in.

Left out: a shell. Loops, conditions and commands are not run; a value that needs one
is unknown, and the report says so.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from dapo_lib.data.arithmetic import evaluate
from dapo_lib.engines.check_config.names import names
from dapo_lib.engines.check_config.source import (
    Setting,
    Source,
    Unknown,
    not_one,
    scalar,
)
from dapo_lib.errors import DapoError

ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
OVERRIDE = re.compile(
    r"(\+\+|\+|~)?([A-Za-z_][\w@]*(?:[./][\w@]+)+)=(.*)|(~)([\w.@]+)", re.DOTALL
)
VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*|[0-9]+)(?::?-([^}]*))?\}|\$([A-Za-z_]\w*)")
TRL_OPTION = re.compile(r"--([a-z][a-z0-9_]*)(?:=(.*))?")


def read(text: str, path: Path) -> Source:
    """The overrides of a script. Raises ``BadInput`` where there are none."""
    variables: dict[str, str] = {}
    verl = Source("verl", "overrides")
    trl = Source("trl", "overrides")
    for line, raw in enumerate(text.splitlines(), start=1):
        # an override is one word, so a line needs no other line to be read
        words = _words(raw.rstrip().removesuffix("\\"), variables)
        if words and words[0] in ("export", "readonly", "local"):
            words = words[1:]
        while words and (found := ASSIGNMENT.fullmatch(words[0])):
            variables[found[1]] = found[2]
            words = words[1:]
        for word in words:
            if found := OVERRIDE.fullmatch(word.rstrip(")")):
                mark = found[1] or found[4] or ""
                value = None if found[4] else _value(found[3])
                verl.settings[found[2] or found[5]] = Setting(value, line, mark)
        _trl_options(words, trl, line)
    roots = {key.split(".")[0] for key in names("verl").defaults}
    if any(key.split(".")[0] in roots for key in verl.settings):
        return verl
    if trl.settings:
        return trl
    raise not_one(path, "no override of verl and no option of TRL's GRPOConfig")


def _words(raw: str, variables: dict[str, str]) -> list[str]:
    try:
        # split first: a variable's text can then never become two words or a quote
        words = shlex.split(_protect(raw), comments=True)
    except ValueError:
        return []  # a here-document or a quote over lines: no override stands in it
    return [_fill(word.replace("\0", " "), variables) for word in words]


def _protect(raw: str) -> str:
    """Blanks inside `$((…))` and `$(…)` do not split words."""
    out, depth, at = [], 0, 0
    while at < len(raw):
        if raw.startswith("$(", at):
            depth += 1
            out.append("$(")
            at += 2
            continue
        character = raw[at]
        if depth and character == "(":
            depth += 1
        elif depth and character == ")":
            depth -= 1
        out.append("\0" if depth and character.isspace() else character)
        at += 1
    return "".join(out)


def _fill(word: str, variables: dict[str, str]) -> str:
    """A word with its variables and arithmetic; what is unknown stays as written."""
    if word.startswith("$((") or "=$((" in word:
        head, _, tail = word.partition("$((")
        inner = re.sub(r"[A-Za-z_]\w*", lambda m: variables.get(m[0], m[0]), tail)
        inner = VARIABLE.sub(lambda m: _variable(m, variables), inner)
        try:
            return head + str(int(evaluate(inner.removesuffix("))")) // 1))
        except (DapoError, ZeroDivisionError):
            return word
    return VARIABLE.sub(lambda m: _variable(m, variables), word)


def _variable(found: re.Match[str], variables: dict[str, str]) -> str:
    name, default = found[1] or found[3], found[2]
    return variables.get(name, default if default is not None else found[0])


def _value(text: str) -> object:
    text = text.strip("'\"")
    return Unknown(text) if "$" in text or "`" in text else scalar(text)


def _trl_options(words: list[str], trl: Source, line: int) -> None:
    """`--epsilon_high 0.28` of `trl grpo` or of a script that parses GRPOConfig."""
    known = names("trl").own
    for at, word in enumerate(words):
        found = TRL_OPTION.fullmatch(word)
        if not found or found[1] not in names("trl").defaults:
            continue
        value = (
            found[2] if found[2] is not None else (words[at + 1 : at + 2] or [""])[0]
        )
        if found[1] in known or trl.settings:
            trl.settings[found[1]] = Setting(_value(value), line)
