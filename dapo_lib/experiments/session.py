"""A training run with a folder: records as JSONL, checkpoints, resume, TensorBoard.

Left out: the loop and what is recorded; both come in as an iterator of records.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dapo_lib.checkpoint import Keeper
from dapo_lib.errors import BadInput
from dapo_lib.experiments.provenance import provenance
from dapo_lib.files import (
    canonical,
    clear_leftovers,
    digest,
    read_json,
    write_bytes,
    write_json,
)

SCHEMA = "dapo-book/session/1"
Records = Callable[[bool], Iterator[dict[str, Any]]]


@dataclass
class Session:
    """One run in one folder: config.json, metrics.jsonl, checkpoints/, result.json.

    `run` is a (policy, task, state); `config` is JSON and names the run; `records`
    takes whether nothing was recorded yet.
    """

    folder: Path
    config: dict[str, Any]
    run: Any
    records: Records

    @property
    def key(self) -> str:
        """Hash of the configuration that a checkpoint belongs to."""
        return digest(canonical(self.config))

    @property
    def _keeper(self) -> Keeper:
        return Keeper(self.folder / "checkpoints", self.key, every=1)

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
            return []
        state.extra.update(extra["state"])
        return extra["records"]

    def steps(self, done: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Run to the end, yielding each new record after it is safe on disk.

        `done` is what :meth:`prepare` returned.
        """
        policy, task, state = self.run
        for record in self.records(not done):
            done.append(record)
            lines = [json.dumps(r, allow_nan=False) for r in done]
            write_bytes(
                self.folder / "metrics.jsonl", "\n".join(lines).encode() + b"\n"
            )
            extra = {"records": done, "state": state.extra}
            self._keeper.save(policy, state, task, extra)
            yield record
        last = {"config": self.config, "last": done[-1] if done else {}}
        write_json(self.folder / "result.json", SCHEMA, {**last, **self._facts()})

    def _facts(self) -> dict[str, Any]:
        return {"provenance": provenance(seed=self.config.get("seed"))}
