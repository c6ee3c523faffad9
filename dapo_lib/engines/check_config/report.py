"""What a check finds: one finding a mechanism, and what has no effect or is refused.

Left out: how the findings are reached; `trl.py` and `verl.py` know their engine.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Status = Literal["dapo", "convention", "not_dapo", "unknown"]
MECHANISMS = (
    "clip_higher",
    "token_level_loss",
    "dynamic_sampling",
    "soft_overlong",
    "no_kl",
    "group_advantage",
    "dual_clip",
    "updates_per_rollout",
    "sampling",
)


@dataclass(frozen=True)
class Finding:
    """One mechanism: its effective values, whether that is DAPO, and what to change.

    `convention` differs from the paper by a stated choice and is still DAPO.
    """

    mechanism: str
    status: Status
    effective: dict[str, Any]
    says: str
    change: tuple[str, ...] = ()


@dataclass(frozen=True)
class Key:
    """A key of the file that does nothing, or that the engine refuses, and why."""

    key: str
    why: str
    line: int | None = None


@dataclass
class Report:
    """The verdict on one file."""

    file: str
    engine: str
    version: str
    names_from: str
    findings: list[Finding] = field(default_factory=list)
    no_effect: list[Key] = field(default_factory=list)
    refused: list[Key] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> Literal["dapo", "not_dapo", "unknown"]:
        """`dapo` if every mechanism is there and the engine would start the run."""
        states = {finding.status for finding in self.findings}
        if "not_dapo" in states or self.refused:
            return "not_dapo"
        return "unknown" if "unknown" in states else "dapo"

    def changes(self) -> list[str]:
        """The smallest set of edits that makes the run DAPO."""
        wanted = [f for f in self.findings if f.status in ("not_dapo", "unknown")]
        edits = [f"remove {k.key}" for k in self.refused]
        return list(dict.fromkeys([*edits, *(c for f in wanted for c in f.change)]))

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "schema": "dapo.check_config/1",
            "file": self.file,
            "engine": self.engine,
            "version": self.version,
            "names_from": self.names_from,
            "verdict": self.verdict,
            "is_dapo": self.verdict == "dapo",
            "mechanisms": {
                f.mechanism: {
                    "status": f.status,
                    "effective": {k: _plain(v) for k, v in f.effective.items()},
                    "says": f.says,
                }
                for f in self.findings
            },
            "no_effect": [asdict(k) for k in self.no_effect],
            "refused": [asdict(k) for k in self.refused],
            "changes": self.changes(),
            "notes": self.notes,
        }


def _plain(value: Any) -> Any:
    simple = value is None or isinstance(value, bool | int | float | str)
    return value if simple else str(value)


MARKS = {"dapo": "yes", "convention": "yes*", "not_dapo": "NO", "unknown": "?"}
HEADLINES = {
    "dapo": "this run is DAPO",
    "not_dapo": "this run is not DAPO",
    "unknown": "cannot tell: values that only a run knows",
}


def render(report: Report) -> str:
    """The report as text for a terminal."""
    where = {"installed": "installed", "table": "table of names"}[report.names_from]
    lines = [
        f"{report.file}: {report.engine} {report.version} ({where})",
        f"verdict: {HEADLINES[report.verdict]}",
        "",
    ]
    for f in report.findings:
        values = ", ".join(f"{k}={_plain(v)}" for k, v in f.effective.items())
        lines.append(f"  {MARKS[f.status]:<4} {f.mechanism:<20} {values}")
        lines.append(f"       {f.says}")
    for title, keys in (
        ("silently without effect", report.no_effect),
        ("refused by the engine", report.refused),
    ):
        if keys:
            lines += ["", f"{title}:"]
            lines += [f"  {k.key}{_line(k)}: {k.why}" for k in keys]
    if report.changes():
        lines += ["", "smallest change to DAPO:"]
        lines += [f"  {change}" for change in report.changes()]
    if report.notes:
        lines += ["", "notes:", *(f"  {note}" for note in report.notes)]
    return "\n".join(lines)


def _line(key: Key) -> str:
    return f" (line {key.line})" if key.line else ""
