"""One run configuration as three texts: ours (YAML), verl's script, TRL's script.

Pure functions of a run; files are export.py's. A template line that ends in `#? flag`
stands only where the flag holds, `#! flag` only where not; `{{name}}` is a hole.
Left out: judgements. What is lost or differs is `table.limits`.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from dapo_lib.engines import table
from dapo_lib.experiments.config import Run

CONDITION = re.compile(r"^(.*?)  #([?!]) (\w+)$")
HOLE = re.compile(r"\{\{([\w.]+)\}\}")
SAMPLING = ("max_rounds", "on_exhausted", "oversample")  # the trainer's own arguments


@cache
def template(name: str) -> str:
    """The text of a template: trl, verl, reward or fsdp."""
    return (files(__package__) / "templates" / f"{name}.txt").read_text("utf-8")


def fill(text: str, holes: Mapping[str, str], flags: Mapping[str, bool]) -> str:
    """A template with its conditions decided and its holes filled.

    >>> fill("a {{x}}\\nb  #? on\\nc  #! on\\n", {"x": "1"}, {"on": False})
    'a 1\\nc\\n'
    """
    lines = []
    for line in text.split("\n"):
        found = CONDITION.match(line)
        if found and flags[found[3]] != (found[2] == "?"):
            continue
        lines.append(found[1] if found else line)
    return HOLE.sub(lambda m: holes[m[1]], "\n".join(lines))


def render_ours(run: Run) -> str:
    """The run as YAML that `dapo train --setting hf` and `dapo export` read.

    >>> from dapo_lib.experiments.config import load_run
    >>> render_ours(load_run("one-gpu")).splitlines()[2:5]
    ['model:', '  path: Qwen/Qwen2.5-0.5B', '  dtype: bfloat16']
    """
    lines, room = [], ""
    for name, value in run.flat().items():
        above, _, key = name.rpartition(".")
        if above and above != room:
            lines.append(f"{above}:")
        room = above
        lines.append(f"{'  ' if above else ''}{key}: {yaml_text(value)}")
    if run.extra:
        lines.append(f"extra: {json.dumps(run.extra, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"


def yaml_text(value: Any) -> str:
    """A value as YAML; text is quoted unless nothing in it could be read otherwise.

    >>> yaml_text(1e-6), yaml_text("none"), yaml_text("acc"), yaml_text([0.9, 1.0])
    ('1.0e-6', '"none"', 'acc', '[0.9, 1]')
    """
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float):
        return table.number(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(yaml_text, value)) + "]"
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_./-]*", value)
    reserved = re.fullmatch(r"(?i)true|false|null|none|yes|no|on|off|y|n", value)
    return value if plain and not reserved else json.dumps(value, ensure_ascii=False)


def render_verl(run: Run) -> str:
    """The launch script, every option by verl's own name.

    >>> from dapo_lib.experiments.config import load_run
    >>> text = render_verl(load_run("dapo-32b"))
    >>> [x.strip(" \\\\") for x in text.splitlines() if "clip_ratio_high" in x]
    ['actor_rollout_ref.actor.clip_ratio_high=0.28']
    """
    lines = [
        f"    {_word(o.mark + o.key, table.hydra_text(o.value))} \\"
        for o in table.options(run, "verl")
    ]
    return _filled("verl", run, options="\n".join(lines))


def render_reward(run: Run) -> str:
    """The reward file that verl's script names."""
    return _filled("reward", run)


def render_trl(run: Run) -> str:
    """The training script for TRL's GRPOTrainer.

    >>> from dapo_lib.experiments.config import load_run
    >>> "    epsilon_high=0.28," in render_trl(load_run("one-gpu")).splitlines()
    True
    """
    lines = [
        f"    {o.key}={table.python_text(o.value)}," for o in table.options(run, "trl")
    ]
    algorithm, data = run.algorithm, run.data
    sampling = {k: getattr(algorithm, k) for k in SAMPLING}
    sampling["advantage_eps"] = algorithm.advantage_eps
    names = ("format", "question", "answer", "prompt", "chat", "max_prompt", "mode")
    columns = {name: getattr(data, name) for name in names}
    return _filled(
        "trl",
        run,
        options="\n".join(lines),
        data=_arguments(columns),
        sampling=_arguments(sampling),
    )


def render_fsdp(run: Run) -> str:
    """accelerate's configuration for the TRL script with FSDP."""
    return _filled("fsdp", run)


def _arguments(given: Mapping[str, Any]) -> str:
    return "\n".join(f"    {k}={table.python_text(v)}," for k, v in given.items())


def _word(key: str, value: str) -> str:
    """An override as one word of the shell."""
    return key + "=" + (shlex.quote(value) if re.search(r'["\[]', value) else value)


def _filled(name: str, run: Run, **more: str) -> str:
    known = table.values(run)
    mixed = {"bfloat16": "bf16", "float16": "fp16", "float32": "no"}
    holes = {
        "name": run.name,
        "model": table.python_text(run.model.path),
        "mode": table.python_text(run.data.mode),
        "mixed": mixed[run.model.dtype],
        "offload": yaml_text(run.hardware.offload),
        "nodes": str(run.hardware.nodes),
        "gpus": str(run.hardware.gpus_per_node),
        "devices": str(known["devices"]),
        "l_max": str(run.schedule.l_max),
        "l_cache": str(run.algorithm.l_cache),
        **{f"tested.{k}": v for k, v in table.table()["tested"].items()},
        **_files(name, run),
        **more,
    }
    return fill(template(name), holes, table.flags(known))


def _files(name: str, run: Run) -> dict[str, str]:
    """Where the script finds its data: the user's files, or what export wrote."""
    data = run.data
    train, validation = data.train, data.validation or data.train
    if name != "verl":
        return {"train": table.python_text(train)}
    if data.format == "verl":
        return {k: shlex.quote(table.hydra_text(v)) for k, v in
                (("train", train), ("validation", validation))}  # fmt: skip
    second = "validation" if data.validation else "train"
    return {"train": '"$HERE/train.parquet"', "validation": f'"$HERE/{second}.parquet"'}
