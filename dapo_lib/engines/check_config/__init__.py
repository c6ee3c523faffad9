"""Is this run DAPO? A TRL or verl configuration, mechanism by mechanism.

Left out: running anything. A value that only a run knows is reported as unknown.
"""

from __future__ import annotations

from pathlib import Path

from dapo_lib.engines.check_config.report import Finding, Key, Report, render

__all__ = ["Finding", "Key", "Report", "check_config", "render"]


def check_config(path: Path | str) -> Report:
    """The report on one configuration file. Raises ``BadInput`` if it is not one."""
    from dapo_lib.engines.check_config import source, trl, verl
    from dapo_lib.engines.check_config.names import from_table, names

    path = Path(path)
    read = source.read(path)
    known = names(read.engine)
    report = Report(path.name, read.engine, known.version, known.source)
    report.notes += read.notes
    if known.version != (tested := from_table(read.engine).version):
        report.notes.append(
            f"names are those of {known.version}; what they do was read in {tested}"
        )
    checker = trl if read.engine == "trl" else verl
    checker.check(read, known, report)
    return report
