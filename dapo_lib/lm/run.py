"""A run of the language-model setting: build policy, task and state, call `train`.

Left out: files. The caller writes the records, and checkpoints what `setting` returns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from dapo_lib.algorithm import Algorithm
from dapo_lib.errors import expect
from dapo_lib.lm.evaluate import describe, evaluate
from dapo_lib.lm.policy import LMPolicy
from dapo_lib.lm.tasks import CoinFlip, TokenTask, task_named
from dapo_lib.lm.warm_start import WarmStart, named, warm_model
from dapo_lib.metrics import Ratio
from dapo_lib.train import Schedule, State, Step, start, train

# the paper's 16 updates per rollout; AdamW 1e-4, one epoch, L_max 24
DIGIT_SUM = Schedule()
# 48 updates per rollout
LETTER = Schedule(rollouts=15, l_max=12, epochs=3, lr=2.5e-4)
# at 2.5e-4 the habit's gradients wear the rare skill away before it has grown
LOOKUP = Schedule(rollouts=15, l_max=12, epochs=3, lr=1.5e-4)
SCHEDULES = {"digit_sum": DIGIT_SUM, "allowed_letter": LETTER, "lookup_letter": LOOKUP}


class Setting(NamedTuple):
    """All that a run needs and a checkpoint saves."""

    policy: LMPolicy
    task: TokenTask
    state: State


def setting(
    algorithm: Algorithm,
    schedule: Schedule,
    *,
    warm_start: str | WarmStart = "digit_sum",
    seed: int = 0,
    coin_flip: bool = False,
) -> Setting:
    """Policy from a warm start, its task, and the state of a run that has not begun.

    `seed` fixes prompts and samples; the warm start has a seed of its own. With
    `coin_flip` the reward is random. Raises ``ValueError`` on a group size of 1, an
    l_max shorter than any answer, and unknown names.
    """
    size = schedule.group_size
    expect(size >= 2, "group_size", size, "at least 2: one response has no advantage")
    config = named(warm_start) if isinstance(warm_start, str) else warm_start
    task = task_named(config.task)(seed, l_max=schedule.l_max)
    policy = LMPolicy(warm_model(config), task)
    generator = torch.Generator().manual_seed(1_000 + seed)
    state = start(algorithm, schedule, policy, generator)
    return Setting(policy, CoinFlip(task) if coin_flip else task, state)


def run_lm(
    algorithm: Algorithm,
    schedule: Schedule | None = None,
    *,
    warm_start: str | WarmStart = "digit_sum",
    seed: int = 0,
    coin_flip: bool = False,
    evaluate_every: int = 4,
) -> Iterator[dict[str, Any]]:
    """Train, yielding a record of plain numbers after every iteration.

    The first record (rollout 0) is the warm start's evaluation. Keys: see
    :func:`record`; ``eval_*`` from :func:`dapo_lib.lm.evaluate.evaluate` every
    `evaluate_every` iterations (0: never) and after the last. `schedule` None takes the
    task's own.
    """
    config = named(warm_start) if isinstance(warm_start, str) else warm_start
    schedule = SCHEDULES[config.task] if schedule is None else schedule
    run = setting(
        algorithm, schedule, warm_start=config, seed=seed, coin_flip=coin_flip
    )
    if evaluate_every:
        yield {"rollout": 0, "updates": 0, **evaluation(run, 0)}
    yield from records(algorithm, schedule, run, evaluate_every=evaluate_every)


def records(
    algorithm: Algorithm, schedule: Schedule, run: Setting, *, evaluate_every: int = 4
) -> Iterator[dict[str, Any]]:
    """The records of a run from where its state stands; see :func:`run_lm`."""
    spent = run.state.extra.get("cpu_seconds", 0.0)
    began = time.process_time()
    for step in train(algorithm, schedule, *run):
        spent += time.process_time() - began
        run.state.extra["cpu_seconds"] = spent
        out = {**record(step, run), "cpu_seconds": spent}
        due = evaluate_every and step.rollout % evaluate_every == 0
        if evaluate_every and (due or step.rollout == schedule.rollouts):
            out |= evaluation(run, step.rollout)
        yield out
        began = time.process_time()


def record(step: Step, run: Setting) -> dict[str, Any]:
    """What one iteration did, as plain numbers.

    Counters since the start: rollout, updates, prompts, tokens, responses is this
    iteration's. Over all drawn groups, before the filter: train_accuracy, all_right,
    all_wrong (shares), kept (groups). Over the batch trained on: batch_accuracy,
    length (tokens), truncated, entropy (nats per token). Over updates: clip_low,
    clip_high (shares of tokens; ``_by_update`` one value an update index), p_up_clipped
    (mean old probability of up-clipped tokens). Where there was no update, ``note``
    says why.
    """
    ledger, drawn = step.ledger, step.ledger.prompts_drawn.sum().item()
    responses = ledger.responses_all.sum().item()
    reward = Ratio(ledger.reward_all.sum().item(), responses)
    out = {
        "rollout": step.rollout,
        "updates": run.state.updates,
        "prompts": run.state.prompts,
        "tokens": run.state.tokens,
        "responses": responses,
        "train_accuracy": (1 + reward.value) / 2,  # a reward is +1 or -1
        "all_right": Ratio(ledger.all_right.sum().item(), drawn).value,
        "all_wrong": Ratio(ledger.all_wrong.sum().item(), drawn).value,
        "kept": ledger.kept.sum().item(),
        "rounds": ledger.rounds.sum().item(),
        "exhausted": ledger.exhausted,
    }
    if step.batch is not None:
        out["batch_accuracy"] = step.batch.correct.double().mean().item()
        out |= describe(step.batch) | run.task.behaviour(step.batch)
    if step.updates:
        out |= clip_shares(step)
    if step.note is not None:
        out["note"] = step.note
    return out


def clip_shares(step: Step) -> dict[str, Any]:
    """Clip fractions of a rollout's updates, and by update index 1..mu."""
    total = {
        name: sum(float(u[name]) for u in step.updates) for name in step.updates[0]
    }
    out: dict[str, Any] = {}
    for name in ("clip_low", "clip_high"):
        out[name] = Ratio(total[name], total["tokens"]).value
        shares = [Ratio(float(u[name]), float(u["tokens"])) for u in step.updates]
        out[f"{name}_by_update"] = [share.value for share in shares]
    out["p_up_clipped"] = Ratio(total["p_up_clipped"], total["clip_high"]).value
    return out


def evaluation(run: Setting, rollout: int) -> dict[str, float]:
    """The policy on the fixed prompts, seeded by run and iteration: ``eval_*``."""
    seed = 1_000_000 * (run.policy.task.seed + 1) + rollout
    found = evaluate(run.policy, seed=seed)
    return {f"eval_{name}": value for name, value in found.items()}
