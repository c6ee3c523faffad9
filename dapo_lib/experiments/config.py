"""What a run on a real model is: one frozen configuration that every engine can read.

`dapo train --setting hf` runs it here, `dapo export` hands it to TRL or verl. Presets
lie in `presets/`, one YAML file each.
Left out: how an engine spells it (engines/map.yml), and any credential or address.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dapo_lib.algorithm import Algorithm
from dapo_lib.data.questions import Questions, read_questions
from dapo_lib.errors import BadInput, expect
from dapo_lib.files import canonical, digest
from dapo_lib.train import Schedule
from dapo_lib.verifier import MODES

PROMPT = (
    "{question}\n\nThink step by step. End with a line `Answer: ` and the final answer."
)
FROZEN = ConfigDict(frozen=True, extra="forbid")


class Model(BaseModel):
    """Which weights, as a folder or a name that transformers can load."""

    model_config = FROZEN
    path: str
    dtype: Literal["float32", "bfloat16", "float16"] = "bfloat16"

    @model_validator(mode="after")
    def _printable(self) -> Model:
        fine = bool(self.path) and self.path.isprintable()
        expect(fine, "model.path", repr(self.path), "a folder or a name, in one line")
        return self


class Data(BaseModel):
    """Where problems come from, and how a question becomes a prompt.

    `problems` files (JSON lines or Parquet) have a question and an answer column;
    `verl` files are Parquet in verl's own schema. `mode` is the verifier's.
    """

    model_config = FROZEN
    train: str
    validation: str | None = None
    format: Literal["problems", "verl"] = "problems"
    question: str = "question"
    answer: str = "answer"
    prompt: str = PROMPT
    chat: bool = Field(True, description="apply the tokenizer's chat template")
    mode: str = "auto"
    max_prompt: int = Field(1024, ge=1, description="tokens; longer prompts are left")

    @model_validator(mode="after")
    def _readable(self) -> Data:
        expect(self.mode in MODES, "data.mode", repr(self.mode), " | ".join(MODES))
        there = "{question}" in self.prompt
        expect(there, "data.prompt", repr(self.prompt), "a text with {question} in it")
        return self

    def read(self, path: str) -> Questions:
        """The questions of one of its files; raises as :func:`read_questions`."""
        return read_questions(
            path,
            format=self.format,
            question=self.question,
            answer=self.answer,
            prompt=self.prompt,
            mode=self.mode,
        )


class Sampling(BaseModel):
    """How rollouts are drawn; log-probabilities are taken at this temperature."""

    model_config = FROZEN
    temperature: float = Field(1.0, gt=0)
    top_p: float = Field(1.0, gt=0, le=1)


class Evaluation(BaseModel):
    """How the validation problems are answered."""

    model_config = FROZEN
    samples: int = Field(32, ge=1, description="responses a problem (avg@k)")
    temperature: float = Field(1.0, gt=0)
    top_p: float = Field(0.7, gt=0, le=1)
    every: int = Field(5, ge=1, description="rollouts between evaluations")


class Hardware(BaseModel):
    """Where it runs. Nothing here may change what is computed."""

    model_config = FROZEN
    nodes: int = Field(1, ge=1)
    gpus_per_node: int = Field(1, ge=1)
    responses_per_device: int = Field(1, ge=1, description="in one forward pass")
    sampler: Literal["vllm", "transformers"] = "vllm"
    tensor_parallel: int = Field(1, ge=1, description="GPUs a sampler spreads over")
    sequence_parallel: int = Field(1, ge=1, description="GPUs a sequence spreads over")
    offload: bool = Field(False, description="weights and optimiser wait on the CPU")
    checkpointing: bool = True
    save_every: int = Field(5, ge=1, description="rollouts between checkpoints")


class Run(BaseModel):
    """All of a run. `extra` passes an engine its own options, by its own names.

    >>> run = Run(name="r", model={"path": "m"}, data={"train": "t.jsonl"})
    >>> run.flat()["algorithm.eps_high"], run.schedule.updates_per_rollout
    (0.28, 16)
    """

    model_config = FROZEN
    name: str = Field("dapo", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    seed: int = Field(0, ge=0)
    model: Model
    data: Data
    algorithm: Algorithm = Algorithm()
    schedule: Schedule = Schedule()
    sampling: Sampling = Sampling()
    evaluation: Evaluation = Evaluation()
    hardware: Hardware = Hardware()
    extra: dict[Literal["trl", "verl"], dict[str, Any]] = {}

    @model_validator(mode="after")
    def _lengths(self) -> Run:
        room, cap = self.algorithm.l_cache, self.schedule.l_max
        fits = self.algorithm.overlong != "soft" or room <= cap
        expect(fits, "algorithm.l_cache", room, f"at most schedule.l_max={cap}")
        return self

    @property
    def key(self) -> str:
        """Hash of everything in it."""
        return digest(canonical(self.model_dump(mode="json")))

    def flat(self) -> dict[str, Any]:
        """Plain values by dotted name, without `extra`."""
        return flattened(self.model_dump(mode="json", exclude={"extra"}))


def flattened(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as dotted keys.

    >>> flattened({"a": {"b": 1}, "c": [2, 3]})
    {'a.b': 1, 'c': [2, 3]}
    """
    out: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            out |= flattened(value, f"{name}.")
        else:
            out[name] = value
    return out


def presets() -> tuple[str, ...]:
    """Names of the run configurations that come with the library.

    >>> "dapo-32b" in presets()
    True
    """
    found = [p.name for p in (files(__package__) / "presets").iterdir()]
    return tuple(sorted(n.removesuffix(".yml") for n in found if n.endswith(".yml")))


def load_run(source: str | Path, changes: Iterable[str] = ()) -> Run:
    """A preset by name, or a YAML file; `changes` are `key=value`, dotted.

    Raises ``BadInput`` naming what is wrong in it.

    >>> load_run("dapo-32b", ["schedule.group_size=8"]).schedule.group_size
    8
    """
    tree, where = _read(source)
    for change in changes:
        _apply(tree, change)
    try:
        return Run(**tree)
    except ValidationError as error:
        raise BadInput(f"{where}: {_first_fault(error)}") from None
    except TypeError:
        raise BadInput(f"{where}: its keys are not names") from None


def _read(source: str | Path) -> tuple[dict[str, Any], str]:
    if str(source) in presets():
        text = (files(__package__) / "presets" / f"{source}.yml").read_text("utf-8")
        return yaml.safe_load(text), f"preset {source}"
    path = Path(source)
    if not path.is_file():
        known = ", ".join(presets())
        raise BadInput(f"{source}: no such file, and no preset of that name ({known})")
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, OSError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" at line {mark.line + 1}" if mark else ""
        raise BadInput(f"{path}: not readable as YAML{line}") from None
    if not isinstance(tree, dict):
        raise BadInput(f"{path}: expected a mapping (see `dapo export ours one-gpu`)")
    return tree, str(path)


def _apply(tree: dict[str, Any], change: str) -> None:
    name, found, text = change.partition("=")
    if not (found and name):
        raise BadInput(f"--set: got {change!r}, expected key=value")
    *above, last = name.strip().split(".")
    node = tree
    for part in above:
        node = node.setdefault(part, {})
        if not isinstance(node, dict):
            raise BadInput(f"--set: got {change!r}, but {part} holds no keys")
    try:
        value = yaml.safe_load(text)
        # "{question} ..." is text: only `extra` holds mappings
        mapping = isinstance(value, dict) and "extra" not in (*above, last)
        node[last] = text if mapping else value
    except yaml.YAMLError:
        raise BadInput(f"--set: got {change!r}, its value is not YAML") from None


def _first_fault(error: ValidationError) -> str:
    fault = error.errors()[0]
    place = ".".join(map(str, fault["loc"])) or "run"
    said = fault["msg"].removeprefix("Value error, ")
    more = error.error_count() - 1
    return f"{place}: {said}" + (f" (and {more} more)" if more else "")
