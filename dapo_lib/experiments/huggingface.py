"""A run on a Hugging Face model in our own loop: a `Run`, a folder, a device.

Left out: several devices. `dapo export` hands the same run to an engine that has them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from copy import copy
from pathlib import Path
from typing import Any

import torch

from dapo_lib.data.questions import Question, prompt_ids
from dapo_lib.errors import BadInput
from dapo_lib.experiments.config import Run
from dapo_lib.experiments.language import flat
from dapo_lib.experiments.session import Session
from dapo_lib.lm.evaluate import describe, solved
from dapo_lib.lm.hf_memory import micro_batches
from dapo_lib.lm.hf_task import QuestionTask
from dapo_lib.lm.huggingface import HuggingFacePolicy
from dapo_lib.lm.run import Setting, records
from dapo_lib.rollout import Prompts
from dapo_lib.train import Schedule, State, start

SAMPLED = 8  # sampling keeps no activations: so many times the rows of a training pass


def device_named(name: str | None) -> torch.device:
    """A device by name; None takes a GPU where there is one.

    Raises ``BadInput`` where PyTorch has no such device here.
    """
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        first = str(error).splitlines()[0][:80]
        raise BadInput(f"--device: got {name!r}, not usable here ({first})") from None
    return device


def load_model(path: str, device: torch.device, *, offline: bool) -> tuple[Any, Any]:
    """Model in float32 and tokenizer from a folder, or by name unless `offline`.

    Raises ``BadInput`` where the extra is missing or nothing can be loaded.
    """
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError:
        raise BadInput(
            "--setting hf: transformers is not installed; install dapo-book[hf]"
        ) from None
    local = offline or Path(path).exists()
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=local)
        model = AutoModelForCausalLM.from_pretrained(
            path, local_files_only=local, dtype=torch.float32
        )
    except (OSError, ValueError, KeyError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise BadInput(f"--model: cannot load {path!r} ({first[:160]})") from None
    return model.to(device), tokenizer


def stop_ids(model: Any, tokenizer: Any) -> tuple[list[int], int]:
    """EOS ids and another id to pad with. Raises ``BadInput`` without an EOS."""
    said = model.generation_config.eos_token_id
    ids = said if isinstance(said, list) else [said, tokenizer.eos_token_id]
    eos = sorted({i for i in ids if i is not None})
    if not eos:
        raise BadInput("--model: neither model nor tokenizer names an EOS token")
    pad = tokenizer.pad_token_id
    if pad is None or pad in eos:  # any other id will do: padding is masked
        pad = next(i for i in range(len(eos) + 1) if i not in eos)
    return eos, pad


def questions(run: Run, path: str, tokenizer: Any) -> tuple[list[Question], list]:
    """The questions of a file that fit, and the token ids of their prompts."""
    data = run.data
    found = data.read(path)
    if data.chat and not getattr(tokenizer, "chat_template", None):
        raise BadInput(
            "data.chat: the tokenizer has no chat template; set data.chat=false"
        )
    each = [(q, prompt_ids(q, tokenizer, data.chat)) for q in found.rows]
    kept = [(q, ids) for q, ids in each if 0 < len(ids) <= data.max_prompt]
    if not kept:
        raise BadInput(f"{path}: no prompt of at most {data.max_prompt} tokens")
    left = found.dropped + len(each) - len(kept)
    print(f"{path}: {len(kept)} questions, {left} left out")
    return [q for q, _ in kept], [ids for _, ids in kept]


def setting(run: Run, model: Any, tokenizer: Any) -> tuple[Setting, Schedule]:
    """Policy, task and fresh state; the schedule with the micro-batches that fit."""
    if run.sampling.top_p != 1:
        raise BadInput(
            f"sampling.top_p: got {run.sampling.top_p}, our loop samples from the "
            "whole distribution; set 1, or export the run"
        )
    rows, ids = questions(run, run.data.train, tokenizer)
    policy = policy_of(run, model, tokenizer, ids)
    schedule = fitting(run, model, longest=max(map(len, ids)))

    def decode(tokens: list[int]) -> str:
        return tokenizer.decode(tokens, skip_special_tokens=True)

    task = QuestionTask(rows, decode, mode=run.data.mode, seed=run.seed)
    generator = torch.Generator().manual_seed(1_000 + run.seed)
    state = start(run.algorithm, schedule, policy, generator)
    return Setting(policy, task, state), schedule


def policy_of(
    run: Run, model: Any, tokenizer: Any, ids: list[list[int]]
) -> HuggingFacePolicy:
    """The model as a policy whose prompts are these."""
    eos, pad = stop_ids(model, tokenizer)
    return HuggingFacePolicy(
        model,
        listed(ids),
        l_max=run.schedule.l_max,
        eos=eos,
        pad=pad,
        temperature=run.sampling.temperature,
        rows=SAMPLED * run.hardware.responses_per_device,
        dtype=getattr(torch, run.model.dtype),
    )


def fitting(run: Run, model: Any, *, longest: int) -> Schedule:
    """The run's schedule, split so that an update fits into the memory that is free."""
    schedule = run.schedule
    responses = schedule.prompts_per_rollout * schedule.group_size
    each = -(-responses // schedule.minibatches)
    fits = micro_batches(
        model,
        responses=each,
        tokens=longest + schedule.l_max,
        dtype=getattr(torch, run.model.dtype),
    )
    asked = -(-each // run.hardware.responses_per_device)
    return schedule.model_copy(update={"micro_batches": max(fits, asked)})


def session(
    run: Run, folder: Path, *, device: str | None = None, offline: bool = False
) -> Session:
    """A resumable run in a folder; at its end, the model is saved beside it.

    Raises ``BadInput`` on a model, data or device that cannot be used here.
    """
    place = device_named(device)
    model, tokenizer = load_model(run.model.path, place, offline=offline)
    made, fits = setting(run, model, tokenizer)
    validation = None
    if run.data.validation is not None:
        validation = questions(run, run.data.validation, tokenizer)

    def rows(first: bool) -> Iterator[dict[str, float | None]]:
        schedule = resplit(fits, made.state)
        print(f"{place}: {schedule.micro_batches} micro-batches an update")
        if first and validation:
            yield flat({"rollout": 0, "updates": 0, **evaluate(run, made, validation)})
        for record in records(run.algorithm, schedule, made, evaluate_every=0):
            step = record["rollout"]
            last = step == schedule.rollouts
            if validation and (last or step % run.evaluation.every == 0):
                record |= evaluate(run, made, validation, step)
            if last:
                save(folder, model, tokenizer)
            yield flat(record)

    config = {"setting": "hf", **run.model_dump(mode="json")}
    return Session(folder, config, made, rows, every=run.hardware.save_every)


def resplit(fits: Schedule, state: State) -> Schedule:
    """The split that a resumed run began with, so that it is bit-equal.

    Where that needs more memory than is free today, what fits, with a line that says
    so: another split is the same sum in another order.
    """
    now = fits.micro_batches
    began = state.extra.get("micro_batches", now)
    if began < now:
        print(
            f"less memory is free than before: {now} micro-batches an update, not "
            f"{began}; the run goes on, equal up to rounding and not to the bit"
        )
    state.extra["micro_batches"] = max(began, now)
    return fits.model_copy(update={"micro_batches": max(began, now)})


def save(folder: Path, model: Any, tokenizer: Any) -> None:
    """Weights and tokenizer as transformers loads them, in `folder`/model, or none."""
    whole, part = folder / "model", folder / "model.part"
    for old in (part, whole):
        shutil.rmtree(old, ignore_errors=True)
    model.save_pretrained(part)
    tokenizer.save_pretrained(part)
    part.rename(whole)


def evaluate(
    run: Run, made: Setting, validation: tuple[list, list], rollout: int = 0
) -> dict[str, float]:
    """avg@k and pass@k on the validation questions, with a generator of their own.

    Sampled at the temperature and top_p of `run.evaluation`, which training never uses.
    """
    rows, ids = validation
    samples = run.evaluation.samples
    task = QuestionTask(rows, made.task.decode, mode=made.task.mode)
    policy = copy(made.policy)  # the same weights, other prompts
    policy.prompt_ids = listed(ids)
    policy.temperature = run.evaluation.temperature
    policy.top_p = run.evaluation.top_p
    index = torch.arange(len(rows))
    generator = torch.Generator().manual_seed(1_000_000 * (run.seed + 1) + rollout)
    drawn = Prompts(index, index, torch.zeros_like(index))
    found = task.grade(policy.sample(drawn, samples, generator))
    shape = describe(found)
    scores = solved(found.correct.view(len(rows), samples))
    scores |= {name: shape[name] for name in ("length", "truncated")}
    return {f"eval_{name}": value for name, value in scores.items()}


def listed(ids: list[list[int]]) -> Callable[[torch.Tensor], list[list[int]]]:
    """Rows of a problem table -> the token ids of their prompts."""
    return lambda index: [ids[i] for i in index.tolist()]
