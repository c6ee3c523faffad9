"""Judgements that do not depend on the engine: the same paper for both.

Left out: names of options. Each function takes effective values and the edits that
would mend them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from dapo_lib.engines.check_config.report import Finding
from dapo_lib.engines.check_config.source import Unknown

EPS_LOW, EPS_HIGH = 0.2, 0.28


def unknown(mechanism: str, effective: Mapping[str, Any]) -> Finding | None:
    """The finding of a mechanism whose values only a run knows."""
    hidden = [k for k, v in effective.items() if isinstance(v, Unknown)]
    if not hidden:
        return None
    says = f"{', '.join(hidden)}: only a run knows the value"
    return Finding(mechanism, "unknown", dict(effective), says)


def is_number(value: Any) -> bool:
    """A finite number of a size that an option can have; not a truth value.

    >>> is_number(0.2), is_number(True), is_number(float("nan"))
    (True, False, False)
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and -1e15 < value < 1e15


def plain(value: Any) -> Any:
    """Numbers, text, truth values and unknowns as they are; anything else as text."""
    simple = value is None or isinstance(value, bool | int | float | str | Unknown)
    return value if simple else str(value)[:60]


def clip(low: Any, high: Any, change: tuple[str, ...]) -> Finding:
    """Eq 8 and 10: the upper bound is the higher one."""
    effective = {"eps_low": low, "eps_high": high}
    if hidden := unknown("clip_higher", effective):
        return hidden
    if not (is_number(low) and is_number(high)):
        says = "the bounds are not numbers"
        return Finding("clip_higher", "not_dapo", effective, says, change)
    if not 0 <= low < high:
        says = f"not higher above: the ratio stays in [{1 - low:g}, {1 + high:g}]"
        return Finding("clip_higher", "not_dapo", effective, says, change)
    if (low, high) == (EPS_LOW, EPS_HIGH):
        says = "the paper's bounds"
        return Finding("clip_higher", "dapo", effective, says)
    says = f"higher above than below; the paper has {EPS_LOW} and {EPS_HIGH}"
    return Finding("clip_higher", "convention", effective, says)


def overlong(
    l_max: Any, l_cache: Any, cap: Any, factor: Any, change: tuple[str, ...]
) -> Finding:
    """Eq 13: the slope ends at the hard generation cap."""
    effective = {"l_max": l_max, "l_cache": l_cache, "generation_cap": cap}
    if hidden := unknown("soft_overlong", effective):
        return hidden
    if not all(is_number(v) for v in (l_max, l_cache, cap)):
        says = "a length is missing or not a number"
        return Finding("soft_overlong", "not_dapo", effective, says, change)
    if not 0 < l_cache <= l_max:
        says = "the cache is not between 1 and l_max: the engine stops or punishes all"
        return Finding("soft_overlong", "not_dapo", effective, says, change)
    if l_max != cap:
        says = f"l_max {l_max} is not the length at which generation stops, {cap}"
        return Finding("soft_overlong", "not_dapo", effective, says, change)
    says = f"0 up to {l_max - l_cache} tokens, then a slope to -1 at {l_max}"
    if factor not in (1, 1.0, None):
        says += f", times {factor}"
        return Finding("soft_overlong", "convention", effective, says)
    return Finding("soft_overlong", "dapo", effective, says)


def updates(per_rollout: Any, effective: dict[str, Any], change: str) -> Finding:
    """How often one rollout is used: at 1 the ratio is 1 and no clip can act."""
    effective = {"updates_per_rollout": per_rollout, **effective}
    if hidden := unknown("updates_per_rollout", effective):
        return hidden
    if not is_number(per_rollout):
        says = "not known from this file"
        return Finding("updates_per_rollout", "convention", effective, says)
    if per_rollout <= 1:
        says = "one update a rollout: the ratio is 1, so neither clip bound ever acts"
        return Finding("updates_per_rollout", "not_dapo", effective, says, (change,))
    says = "the clip can act from the second update on; the paper has 16"
    status = "dapo" if per_rollout == 16 else "convention"
    return Finding("updates_per_rollout", status, effective, says)


def sampling(temperature: Any, top_p: Any, change: tuple[str, ...]) -> Finding:
    """Rollouts at temperature 1 from the whole distribution."""
    effective = {"temperature": temperature, "top_p": top_p}
    if hidden := unknown("sampling", effective):
        return hidden
    if temperature == 1 and top_p == 1:
        return Finding("sampling", "dapo", effective, "temperature 1, nothing cut off")
    says = "not the paper's sampling (temperature 1, top_p 1)"
    return Finding("sampling", "convention", effective, says, change)


def closest(key: str, known: Iterable[str]) -> str | None:
    """The option that a mistyped key most likely means."""
    near = [k for k in known if abs(len(k) - len(key)) <= 4]
    found = difflib.get_close_matches(key, near, n=1, cutoff=0.8)
    return found[0] if found else None
