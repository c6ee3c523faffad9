"""`dapo train`: one run of a setting, or one run a seed; prints a table, writes JSON.

Left out: defaults that belong to a recipe. An option that was not given is None here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dapo_lib.cli import app
from dapo_lib.cli.options import (
    AlgorithmName,
    Offline,
    Out,
    check_ranges,
    given,
    reject_unused,
)

COMMON = {"setting", "algorithm", "eps_low", "eps_high", "group_size", "lr", "out"}
CANDIDATE = COMMON | {"dataset", "recipe", "steps", "data", "offline"}
SEED = CANDIDATE - {"lr"} | {"maximum_examples", "seed"}
DERIVATION = CANDIDATE | {"mix", "prompts_per_step", "seed", "seeds", "resume"}
LANGUAGE = COMMON | {"arm", "iterations", "seed", "prompts_per_step", "l_max"}
LANGUAGE |= {"warm_start", "warm_seed", "resume", "tensorboard"}
HUGGING_FACE = COMMON | {"config", "set_", "model", "device", "dtype", "data"}
HUGGING_FACE |= {"offline", "iterations", "seed", "prompts_per_step", "l_max"}
HUGGING_FACE |= {"resume", "tensorboard"}
RANGES = {
    "maximum_examples": (4, 10**9),
    "steps": (0, 10**9),
    "prompts_per_step": (1, 10**6),
    "group_size": (2, 10**6),
    "seed": (0, 2**63 - 1),
    "seeds": (1, 10**5),
    "eps_low": (0.0, 1.0),
    "eps_high": (0.0, float("inf")),
    "lr": (1e-12, 1e3),
    "iterations": (0, 10**7),
    "l_max": (1, 10**6),
    "warm_seed": (0, 2**31),
}


@app.command()
def train(
    context: typer.Context,
    setting: Annotated[
        Literal["candidate", "lm", "hf"], typer.Option(help="which policy and task")
    ] = "candidate",
    algorithm: Annotated[
        AlgorithmName, typer.Option(help="the loop is the same for all")
    ] = "dapo",
    dataset: Annotated[
        Literal["gsm8k-candidate"], typer.Option(help="candidate: the problems")
    ] = "gsm8k-candidate",
    recipe: Annotated[
        Literal["derivation", "seed"],
        typer.Option(help="candidate: derivation is honest, seed the published table"),
    ] = "derivation",
    mix: Annotated[
        Literal["verify", "hard"], typer.Option(help="derivation: the distractors")
    ] = "verify",
    maximum_examples: Annotated[
        int, typer.Option(help="seed: train rows, a quarter of it validates")
    ] = 512,
    steps: Annotated[int, typer.Option(help="candidate: iterations")] = 300,
    prompts_per_step: Annotated[
        int | None, typer.Option(help="groups a step [derivation: 8, lm: 32]")
    ] = None,
    group_size: Annotated[int | None, typer.Option(help="responses a prompt")] = None,
    seed: Annotated[int | None, typer.Option(help="one seed [seed: 42]")] = None,
    seeds: Annotated[
        int | None, typer.Option(help="derivation: seeds 0 to N-1 side by side")
    ] = None,
    eps_low: Annotated[float | None, typer.Option(help="lower clip, 0 to 1")] = None,
    eps_high: Annotated[float | None, typer.Option(help="upper clip, >= 0")] = None,
    lr: Annotated[float | None, typer.Option(help="learning rate [recipe's]")] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="GSM8K folder (train.jsonl, test.jsonl) [env DAPO_DATA]; hf: a file, "
            "a folder or a data set's name [config's]"
        ),
    ] = None,
    offline: Offline = False,
    arm: Annotated[
        str | None, typer.Option(help="lm: an arm of `dapo experiments list`")
    ] = None,
    iterations: Annotated[int, typer.Option(help="lm: rollouts")] = 16,
    l_max: Annotated[int, typer.Option(help="lm: length cap, tokens")] = 24,
    warm_start: Annotated[
        Literal["digit_sum", "digit_sum_rare", "allowed_letter", "lookup_letter"],
        typer.Option(help="lm: task and habit to start from"),
    ] = "digit_sum",
    warm_seed: Annotated[int, typer.Option(help="lm: seed of the warm start")] = 0,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="go on from the checkpoints by --out"),
    ] = False,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="lm: also write TensorBoard events")
    ] = False,
    config: Annotated[
        str, typer.Option(help="hf: a run's YAML file or preset, see `dapo export`")
    ] = "one-gpu",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="hf: key=value, dotted")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="hf: folder or name of the model [config's]")
    ] = None,
    dtype: Annotated[
        Literal["float32", "bfloat16"] | None,
        typer.Option(help="hf: of the passes; weights stay float32 [config's]"),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="hf: cpu, cuda, … [a GPU where there is one]")
    ] = None,
    out: Out = None,
) -> None:
    """Train one policy and print untrained -> trained; --out writes it as JSON."""
    from contextlib import nullcontext

    from dapo_lib.files import check_writable, sole_writer

    check_ranges(context, RANGES)
    used, where = _used(setting, recipe)
    reject_unused(context, used, where)
    options = dict(context.params)
    folder = setting != "candidate"
    if out is not None and not folder:
        check_writable(out)
    with nullcontext() if out is None else sole_writer(out, folder=folder):
        if setting == "lm":
            _language(options)
        elif setting == "hf":
            _hugging_face(context, options)
        elif recipe == "seed":
            _seed(options)
        else:
            _derivation(options)


def _used(setting: str, recipe: str) -> tuple[set[str], str]:
    """The options that do something in a setting, and its name in a message."""
    if setting == "lm":
        return LANGUAGE, "the lm setting"
    if setting == "hf":
        return HUGGING_FACE, "the hf setting"
    if recipe == "seed":
        return SEED, "the seed recipe"
    return DERIVATION, "the derivation recipe"


def _seed(options: dict[str, Any]) -> None:
    from dapo_lib.experiments.candidate import train_seed

    data = _data(options)
    if options["algorithm"] != "dapo":
        from dapo_lib.errors import BadInput

        name = options["algorithm"]
        raise BadInput(f"--algorithm: got {name!r}, the seed recipe runs dapo only")
    payload, table = train_seed(
        data,
        steps=options["steps"],
        group_size=_or(options["group_size"], 4),
        seed=_or(options["seed"], 42),
        maximum_examples=options["maximum_examples"],
        eps_low=_or(options["eps_low"], 0.2),
        eps_high=_or(options["eps_high"], 0.28),
    )
    _finish(payload, table, data, options["out"])


def _derivation(options: dict[str, Any]) -> None:
    from dapo_lib.experiments.candidate import train_derivation

    seed, seeds = options["seed"], options["seeds"]
    if seed is not None and seeds is not None:
        from dapo_lib.errors import BadInput

        raise BadInput(f"--seeds: got {seeds} beside --seed {seed}; give one of them")
    folder, data = _checkpoints(options), _data(options)
    payload, table = train_derivation(
        data,
        algorithm=options["algorithm"],
        mix=options["mix"],
        prompts_per_step=_or(options["prompts_per_step"], 8),
        steps=options["steps"],
        group_size=_or(options["group_size"], 4),
        lr=options["lr"],
        seeds=[seed] if seed is not None else list(range(_or(seeds, 1))),
        eps_low=options["eps_low"],
        eps_high=options["eps_high"],
        checkpoints=folder,
    )
    _finish(payload, table, data, options["out"])


def _checkpoints(options: dict[str, Any]) -> Path | None:
    """`NAME.checkpoints` beside the file of --out, where --resume asks for them."""
    if not options["resume"]:
        return None
    if options["out"] is None:
        from dapo_lib.errors import BadInput

        raise BadInput("--resume: needs --out; checkpoints are kept beside that file")
    return options["out"].with_name(f"{options['out'].name}.checkpoints")


def _language(options: dict[str, Any]) -> None:
    from dapo_lib.cli.progress import follow
    from dapo_lib.errors import BadInput
    from dapo_lib.experiments.language import language_run, session

    if options["out"] is None:
        raise BadInput("--out: a folder is needed for records and checkpoints")
    if options["arm"] is not None and options["algorithm"] != "dapo":
        raise BadInput(f"--arm: got {options['arm']!r}, give --arm or --algorithm")
    run = language_run(options)
    follow(
        session(run, _or(options["seed"], 0), options["out"]),
        resume=options["resume"],
        tensorboard=options["tensorboard"],
        total=options["iterations"],
    )


def _hugging_face(context: typer.Context, options: dict[str, Any]) -> None:
    import os

    from dapo_lib.cli.progress import follow
    from dapo_lib.errors import BadInput
    from dapo_lib.experiments.config import load_run
    from dapo_lib.experiments.huggingface import session

    if options["out"] is None:
        raise BadInput("--out: a folder is needed for records and checkpoints")
    if options["offline"]:  # read once, when transformers or datasets is imported
        os.environ["HF_HUB_OFFLINE"] = "1"
    run = load_run(options["config"], [*_changes(context), *(options["set_"] or ())])
    made = session(
        run, options["out"], device=options["device"], offline=options["offline"]
    )
    follow(
        made,
        resume=options["resume"],
        tensorboard=options["tensorboard"],
        total=run.schedule.rollouts,
    )


SHORT = {  # an option of the command line -> a key of the run's configuration
    "model": "model.path",
    "dtype": "model.dtype",
    "data": "data.train",
    "iterations": "schedule.rollouts",
    "prompts_per_step": "schedule.prompts_per_rollout",
    "group_size": "schedule.group_size",
    "l_max": "schedule.l_max",
    "lr": "schedule.lr",
    "eps_low": "algorithm.eps_low",
    "eps_high": "algorithm.eps_high",
    "seed": "seed",
}


def _changes(context: typer.Context) -> list[str]:
    """What was given on the command line, as changes of the configuration."""
    import json

    from dapo_lib.algorithm import ALGORITHMS

    options, changes = given(context), []
    if "algorithm" in options:
        chosen = ALGORITHMS[options["algorithm"]].model_dump(mode="json")
        chosen.pop("l_cache")
        changes = [f"algorithm.{k}={json.dumps(v)}" for k, v in chosen.items()]
    for name, key in SHORT.items():
        if name in options:
            value = options[name]
            text = value if isinstance(value, int | float) else str(value)
            changes.append(f"{key}={json.dumps(text)}")
    return changes


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value  # 0 is a value, not "unset"


def _data(options: dict[str, Any]) -> Any:
    from dapo_lib.data.gsm8k import resolve_data

    return resolve_data(options["data"], offline=options["offline"])


def _finish(payload: dict[str, Any], table: str, data: Any, out: Path | None) -> None:
    from dapo_lib.experiments.candidate import SCHEMA
    from dapo_lib.files import write_json

    print(f"data: {data.source.describe()}\n{table}")
    if out is not None:
        write_json(out, SCHEMA, payload)
        print(f"written: {out}")
