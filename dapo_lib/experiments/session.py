"""A training run with a folder: records as JSONL, checkpoints, resume, TensorBoard.

Left out: the loop and what is recorded; both come in as an iterator of records.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dapo_lib.checkpoint import Keeper
from dapo_lib.errors import BadInput, DamagedFile
from dapo_lib.experiments.provenance import provenance
from dapo_lib.files import (
    append_bytes,
    canonical,
    clear_leftovers,
    digest,
    read_json,
    write_bytes,
    write_json,
)

SCHEMA = "dapo-book/session/2"
Records = Callable[[bool], Iterator[dict[str, Any]]]


@dataclass
class Session:
    """One run in one folder: config.json, metrics.jsonl, checkpoints/, result.json.

    `run` is a (policy, task, state); `config` is JSON and names the run; `records`
    takes whether nothing was recorded yet. A checkpoint is written every `every`
    iterations and at the end: large weights take a while to write.
    """

    folder: Path
    config: dict[str, Any]
    run: Any
    records: Records
    every: int = 1

    @property
    def key(self) -> str:
        """Hash of the configuration that a checkpoint belongs to."""
        return digest(canonical(self.config))

    @property
    def _keeper(self) -> Keeper:
        return Keeper(self.folder / "checkpoints", self.key, every=self.every)

    def prepare(self, resume: bool) -> list[dict[str, Any]]:
        """Make or reopen the folder; the records so far. Raises ``BadInput``.

        A folder that holds a run is only continued with `resume`, and only by the same
        configuration.
        """
        path = self.folder / "config.json"
        if not path.exists():
            write_json(path, SCHEMA, {"config": self.config})
        elif not resume:
            raise BadInput(
                f"--out: {self.folder} already holds a run; add --resume to continue "
                "it, or choose another folder"
            )
        elif digest(canonical(read_json(path, SCHEMA)["config"])) != self.key:
            raise BadInput(
                f"--resume: {self.folder} holds a run with other options; use the ones "
                f"in {path}, or choose another folder"
            )
        clear_leftovers(self.folder)
        policy, task, state = self.run
        extra = self._keeper.restore(policy, state, task)
        if extra is None:
            write_bytes(self._metrics, b"")
            return []
        state.extra.update(extra["state"])
        return self._recorded(**extra["metrics"])

    @property
    def _metrics(self) -> Path:
        return self.folder / "metrics.jsonl"

    def _recorded(self, size: int, sha256: str) -> list[dict[str, Any]]:
        """The records that a checkpoint has seen; what came after them is cut off."""
        try:
            data = self._metrics.read_bytes()
        except OSError:
            data = b""
        if digest(data[:size]) != sha256:
            raise DamagedFile(
                f"{self._metrics}: not as the last checkpoint saw it; restore it, or "
                "choose another --out and start anew"
            )
        if len(data) > size:
            write_bytes(self._metrics, data[:size])
        return [json.loads(line) for line in data[:size].splitlines()]

    def steps(self, done: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Run to the end, yielding each new record after it is safe on disk.

        `done` is what :meth:`prepare` returned. Nothing here grows with the run.
        """
        policy, task, state = self.run
        seen = hashlib.sha256(self._metrics.read_bytes())
        size, last = self._metrics.stat().st_size, done[-1] if done else {}
        keeper, waits = self._keeper, False
        for last in self.records(not done):
            line = json.dumps(last, allow_nan=False).encode() + b"\n"
            append_bytes(self._metrics, line)
            seen.update(line)
            size += len(line)
            kept = {"size": size, "sha256": seen.hexdigest()}
            extra = {"metrics": kept, "state": state.extra}
            waits = not keeper.due(state.rollouts, last=False)
            if not waits:
                keeper.save(policy, state, task, extra)
            yield last
        if waits:
            keeper.save(policy, state, task, extra)
        facts = {"config": self.config, "last": last, **self._facts()}
        write_json(self.folder / "result.json", SCHEMA, facts)

    def _facts(self) -> dict[str, Any]:
        return {"provenance": provenance(seed=self.config.get("seed"))}
