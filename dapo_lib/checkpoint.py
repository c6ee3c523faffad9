"""Save a run so that resuming it is bit-equal to never having stopped.

A checkpoint is two files: `step-N.safetensors` (every tensor) and `step-N.json` (plain
values, and the SHA-256 of the tensors), the JSON written last. The last two are kept.
Left out: pickle. What cannot be a tensor or JSON is not state.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors.torch as st
import torch
from safetensors import SafetensorError
from torch import Tensor

from dapo_lib.errors import BadInput, DamagedFile
from dapo_lib.files import (
    clear_leftovers,
    digest,
    read_json,
    write_bytes,
    write_json,
)
from dapo_lib.rollout import Rollout

if TYPE_CHECKING:  # the loop knows nothing of files, nor this of the loop
    from dapo_lib.train import Policy, State, Task

SCHEMA = "dapo-book/checkpoint/1"
KEPT = 2


def save(
    folder: Path | str,
    policy: Policy,
    state: State,
    task: Task,
    *,
    config: str,
    extra: dict[str, Any] | None = None,
) -> Path:
    """Write the state after `state.rollouts` iterations and drop all but the last two.

    `config` is the hash of the run's configuration; `extra` (JSON) travels along, for
    records kept so far. Returns the JSON's path. Raises ``BadInput`` where the folder
    cannot be written; the older checkpoints are then still whole.
    """
    tensors = {f"policy.{k}": v for k, v in policy.state_dict().items()}
    plain: dict[str, Any] = {"config": config, "extra": extra or {}}
    _split("optimiser", state.optimiser.state_dict(), tensors, plain)
    _split("generator", _generator_state(state.generator), tensors, plain)
    if state.sampler.buffer is not None:
        buffer = {k: v for k, v in vars(state.sampler.buffer).items() if v is not None}
        tensors |= {f"buffer.{k}": v for k, v in buffer.items()}
    schedule = state.scheduler.state_dict()
    plain["scheduler"] = {k: v for k, v in schedule.items() if k != "lr_lambdas"}
    plain["counters"] = {k: getattr(state, k) for k in COUNTERS}
    if hasattr(task, "state_dict"):
        _split("task", task.state_dict(), tensors, plain)
    stem = Path(folder) / f"step-{state.rollouts:08d}"
    data = st.save({k: v.detach().cpu().contiguous() for k, v in tensors.items()})
    write_bytes(stem.with_suffix(".safetensors"), data)
    write_json(stem.with_suffix(".json"), SCHEMA, {**plain, "tensors": digest(data)})
    for old in sorted(Path(folder).glob("step-*.json"))[:-KEPT]:
        old.unlink()
        old.with_suffix(".safetensors").unlink(missing_ok=True)
    return stem.with_suffix(".json")


COUNTERS = ("rollouts", "updates", "prompts", "tokens")


@dataclass(frozen=True)
class Keeper:
    """Checkpoints of one run in one folder, every `every` iterations and at the end.

    `config` is the hash of the run's configuration; the folder is this run's alone.
    """

    folder: Path
    config: str
    every: int = 50

    def due(self, rollout: int, last: bool) -> bool:
        """Whether the state after this iteration is kept."""
        return last or rollout % self.every == 0

    def save(self, policy: Policy, state: State, task: Task, extra: dict) -> None:
        """See :func:`save`."""
        save(self.folder, policy, state, task, config=self.config, extra=extra)

    def restore(self, policy: Policy, state: State, task: Task) -> dict | None:
        """Put the newest whole checkpoint in place; its `extra`, or None without one.

        Raises ``BadInput`` where it is of another configuration.
        """
        clear_leftovers(self.folder)
        newest = latest(self.folder)
        if newest is None:
            return None
        return load(newest, policy, state, task, config=self.config)


def latest(folder: Path | str) -> Path | None:
    """The newest checkpoint that is whole, or None; a damaged one is passed over."""
    for path in sorted(Path(folder).glob("step-*.json"), reverse=True):
        try:
            _read(path)
        except DamagedFile:
            continue
        return path
    return None


def load(
    path: Path | str, policy: Policy, state: State, task: Task, *, config: str
) -> dict[str, Any]:
    """Put a checkpoint into freshly built objects; returns its `extra`.

    Raises ``DamagedFile`` for a file that is not whole, ``BadInput`` for one of another
    configuration; nothing is changed then.
    """
    plain, tensors = _read(Path(path))
    if plain["config"] != config:
        raise BadInput(
            f"{path}: checkpoint of another configuration; resume with the options it "
            "was made with, or choose another --out"
        )
    policy.load_state_dict(_under("policy", tensors))
    state.optimiser.load_state_dict(_join("optimiser", tensors, plain))
    # the lambdas are code, which a checkpoint never holds
    kept = {"lr_lambdas": state.scheduler.state_dict()["lr_lambdas"]}
    state.scheduler.load_state_dict(plain["scheduler"] | kept)
    _restore_generator(state.generator, _join("generator", tensors, plain))
    buffer = _under("buffer", tensors)
    if buffer:
        absent = {f.name: None for f in fields(Rollout)}
        state.sampler.buffer = Rollout(**(absent | buffer))
    for name, value in plain["counters"].items():
        setattr(state, name, value)
    if hasattr(task, "load_state_dict"):
        task.load_state_dict(_join("task", tensors, plain))
    return plain["extra"]


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    plain = read_json(path, SCHEMA)
    weights = path.with_suffix(".safetensors")
    try:
        data = weights.read_bytes()
        if digest(data) != plain["tensors"]:
            raise DamagedFile(f"{weights}: checksum does not match; remove {path.stem}")
        return plain, st.load(data)
    except (OSError, SafetensorError) as error:
        raise DamagedFile(f"{weights}: not readable; remove {path.stem}.*") from error


def _split(name: str, value: Any, tensors: dict, plain: dict) -> None:
    """Move the tensors out of a nested value, leaving JSON with references to them."""

    def walk(key: str, node: Any) -> Any:
        if isinstance(node, Tensor):
            tensors[key] = node
            return {"tensor": key}
        if isinstance(node, np.ndarray):
            tensors[key] = torch.from_numpy(node)
            return {"array": key}
        if isinstance(node, dict):
            items = [[k, walk(f"{key}.{k}", v)] for k, v in node.items()]
            return {"items": items}
        if isinstance(node, list | tuple):
            return {"list": [walk(f"{key}.{i}", v) for i, v in enumerate(node)]}
        return {"value": node}

    plain[name] = walk(name, value)


def _join(name: str, tensors: dict[str, Tensor], plain: dict[str, Any]) -> Any:
    def build(node: dict[str, Any]) -> Any:
        if "tensor" in node:
            return tensors[node["tensor"]]
        if "array" in node:
            return tensors[node["array"]].numpy()
        if "items" in node:
            return {k: build(v) for k, v in node["items"]}
        if "list" in node:
            return [build(v) for v in node["list"]]
        return node["value"]

    return build(plain[name])


def _under(name: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    prefix = f"{name}."
    return {
        k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)
    }


def _generator_state(generator: Any) -> Any:
    """Torch and NumPy generators, lists of them, and objects with a `state_dict`."""
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    if hasattr(generator, "state_dict"):
        return generator.state_dict()
    return [_generator_state(g) for g in generator]


def _restore_generator(generator: Any, saved: Any) -> None:
    if isinstance(generator, torch.Generator):
        generator.set_state(saved)
    elif isinstance(generator, np.random.Generator):
        generator.bit_generator.state = saved
    elif hasattr(generator, "load_state_dict"):
        generator.load_state_dict(saved)
    else:
        for one, state in zip(generator, saved, strict=True):
            _restore_generator(one, state)
