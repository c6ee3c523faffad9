"""The one training loop: sample, verify, filter, shape, advantage, mu updates.

It serves every policy (candidate, tiny transformer, Hugging Face) and never asks which.
Left out: logging, checkpoints, progress. The caller iterates and does what it likes;
breaking out of the iteration leaves `state` resumable.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from dapo_lib.advantage import group_advantages
from dapo_lib.algorithm import Algorithm
from dapo_lib.errors import Diverged, ImpossibleLogProb
from dapo_lib.objective import count_denominator, policy_loss
from dapo_lib.overlong import linear_overlong, overlong_mask, soft_overlong
from dapo_lib.rollout import Prompts, Rollout
from dapo_lib.sampling import DynamicSampler, Ledger, has_signal, keep_everything


class Policy(Protocol):
    """What the loop asks of a policy: to sample and to score. Nothing else differs."""

    def refresh(self) -> None:
        """Make the current weights the old policy that `sample` draws from."""

    def sample(self, prompts: Prompts, group_size: int, generator: Any) -> Rollout:
        """group_size responses per prompt, rows of a prompt adjacent, not graded."""

    def log_prob(self, rollout: Rollout) -> Tensor:
        """[B, T] log-probabilities in nats, current weights, differentiable."""

    def parameters(self) -> Iterable[Tensor]:
        """The tensors that the optimiser updates."""

    def state_dict(self) -> dict[str, Tensor]:
        """Current and old weights."""

    def load_state_dict(self, state: dict[str, Tensor]) -> Any:
        """The inverse of `state_dict`."""


class Task(Protocol):
    """Where prompts come from and what a response is worth."""

    def draw(self, need: Tensor, generator: Any) -> Prompts:
        """need [lanes] prompts for each lane; the data cursor always advances."""

    def grade(self, rollout: Rollout) -> Rollout:
        """The same responses with `correct` and `reward` filled in."""


class Schedule(BaseModel):
    """How much is sampled and how it is fitted. Counters are named by their unit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rollouts: int = Field(16, ge=0, description="iterations of the loop")
    prompts_per_rollout: int = Field(32, ge=1)
    group_size: int = Field(16, ge=2)
    l_max: int = Field(24, ge=1, description="tokens, the hard cap, EOS counted")
    minibatches: int = Field(16, ge=1, description="updates per epoch over a rollout")
    minibatch_by: Literal["response", "group"] = "response"
    micro_batches: int = Field(1, ge=1, description="splits of a mini-batch")
    epochs: int = Field(1, ge=1)
    refresh_every: int = Field(1, ge=1, description="rollouts between old policies")
    optimiser: Literal["sgd", "adamw"] = "adamw"
    lr: float = Field(1e-4, gt=0)
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = Field(0.0, ge=0)
    warmup_rollouts: int = Field(0, ge=0)
    clip_norm: float | None = Field(1.0, gt=0)
    clip_value: float | None = Field(None, gt=0)

    @property
    def updates_per_rollout(self) -> int:
        """Optimiser steps between two rollouts."""
        return self.minibatches * self.epochs


@dataclass
class Step:
    """What one iteration did: the batch it trained on, its cost, its diagnostics.

    `updates` holds one dict of sums and counts per update index 1..mu (objective.py);
    `batch` is None where the batch was skipped.
    """

    rollout: int
    batch: Rollout | None
    advantage: Tensor | None
    ledger: Ledger
    updates: list[dict[str, Tensor]]

    @property
    def note(self) -> str | None:
        """What went wrong without ending the run, and what to change; else None."""
        if self.updates:
            return None
        if self.batch is not None:
            return "no update: every response is masked; raise l_max or do not filter"
        drawn, right, wrong = (
            int(getattr(self.ledger, name).sum())
            for name in ("prompts_drawn", "all_right", "all_wrong")
        )
        return (
            f"no update: of {drawn} groups drawn {right} were all right, {wrong} all "
            "wrong; change the difficulty of the prompts, or raise group_size or "
            "max_rounds"
        )


@dataclass
class State:
    """All that a resumed run needs beside the policy's weights."""

    optimiser: torch.optim.Optimizer
    scheduler: torch.optim.lr_scheduler.LRScheduler
    generator: Any
    sampler: DynamicSampler
    rollouts: int = 0
    updates: int = 0
    prompts: int = 0
    tokens: int = 0
    extra: dict[str, Any] = field(default_factory=dict)


def start(
    algorithm: Algorithm,
    schedule: Schedule,
    policy: Policy,
    generator: Any,
    *,
    lanes: int = 1,
) -> State:
    """The state of a run that has not begun.

    `generator` is whatever the policy and task draw from; `lanes` independent runs are
    trained side by side.
    """
    optimiser = _optimiser(schedule, list(policy.parameters()))
    # the schedule counts updates; a warm-up in rollouts is converted
    warmup = schedule.warmup_rollouts * schedule.updates_per_rollout
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda update: min(1.0, (update + 1) / warmup) if warmup else 1.0
    )
    sampler = DynamicSampler(
        schedule.prompts_per_rollout,
        schedule.group_size,
        keep=has_signal if algorithm.dynamic_sampling else keep_everything,
        max_rounds=algorithm.max_rounds if algorithm.dynamic_sampling else 1,
        on_exhausted=algorithm.on_exhausted,
        surplus=algorithm.surplus,
        oversample=algorithm.oversample if algorithm.dynamic_sampling else 1.0,
        lanes=lanes,
    )
    return State(optimiser, scheduler, generator, sampler)


def train(
    algorithm: Algorithm, schedule: Schedule, policy: Policy, task: Task, state: State
) -> Iterator[Step]:
    """Run the loop from where `state` stands, yielding after every rollout.

    Raises ``Starved`` by the sampler's policy and ``Diverged`` on a log-probability or
    gradient that is not finite, before it touches the weights. Source: paper Alg 1.
    """
    while state.rollouts < schedule.rollouts:
        if state.rollouts % schedule.refresh_every == 0:
            policy.refresh()
        batch, ledger = state.sampler.fill(
            lambda need: task.draw(need, state.generator),
            lambda prompts: task.grade(
                policy.sample(prompts, schedule.group_size, state.generator)
            ),
        )
        advantage, updates = None, []
        if batch is not None:
            advantage = advantages(algorithm, schedule, batch)
            updates = update(algorithm, schedule, policy, state, batch, advantage)
        state.rollouts += 1
        state.prompts += int(ledger.prompts_drawn.sum())
        state.tokens += int(ledger.tokens_generated.sum())
        yield Step(state.rollouts, batch, advantage, ledger, updates)


def advantages(algorithm: Algorithm, schedule: Schedule, batch: Rollout) -> Tensor:
    """Shape the rewards of a filtered batch, then compare within groups: [B]."""
    excluded = batch.truncated & (
        algorithm.overlong == "filter" and algorithm.overlong_baseline == "exclude"
    )
    return group_advantages(
        shaped_reward(algorithm, schedule, batch),
        batch.group_id,
        ddof=algorithm.ddof,
        eps=algorithm.advantage_eps,
        scale=algorithm.scale,
        baseline=algorithm.baseline,
        include=~excluded & (batch.length > 0),
        lanes=batch.lane,
    )


def shaped_reward(algorithm: Algorithm, schedule: Schedule, batch: Rollout) -> Tensor:
    """Rule reward plus the length penalty that the algorithm asks for: [B]."""
    if algorithm.overlong == "soft":
        return batch.reward + soft_overlong(
            batch.length, l_max=schedule.l_max, l_cache=algorithm.l_cache
        )
    if algorithm.overlong == "linear":
        return batch.reward + linear_overlong(batch.length)
    return batch.reward


def update(
    algorithm: Algorithm,
    schedule: Schedule,
    policy: Policy,
    state: State,
    batch: Rollout,
    advantage: Tensor,
) -> list[dict[str, Tensor]]:
    """mu optimiser steps on one rollout; the clip diagnostics of each."""
    mask = batch.mask
    if algorithm.overlong == "filter":
        mask = overlong_mask(mask, batch.truncated)
    diagnostics = []
    for rows in minibatches(schedule, batch, state.generator):
        if not mask[rows].count_nonzero():
            continue  # a step on a zero gradient would still move by momentum
        for parameter in policy.parameters():
            parameter.grad = None
        part = (batch.rows(rows), advantage[rows], mask[rows])
        try:
            diagnostics.append(accumulate(algorithm, schedule, policy, *part))
        except ImpossibleLogProb as error:
            raise _diverged(str(error), schedule) from error
        clip_gradients(schedule, policy)
        state.optimiser.step()
        state.scheduler.step()
        state.updates += 1
    if not diagnostics:
        warnings.warn(
            f"rollout {state.rollouts + 1}: every response is masked (cut at "
            f"l_max={schedule.l_max}), no update; raise l_max or use overlong='soft'",
            stacklevel=2,
        )
    return diagnostics


def accumulate(
    algorithm: Algorithm,
    schedule: Schedule,
    policy: Policy,
    batch: Rollout,
    advantage: Tensor,
    mask: Tensor,
) -> dict[str, Tensor]:
    """Add a mini-batch's gradient, micro-batch by micro-batch; return the sums.

    The denominator is counted over the whole mini-batch, so that the split changes
    nothing (except under ``micro_token_mean``, whose dependence is the point).
    """
    splits = min(schedule.micro_batches, len(batch))
    size, more = divmod(len(batch), splits)  # the first `more` pieces have one more
    cuts = [i * size + min(i, more) for i in range(splits + 1)]
    whole = None
    if algorithm.reduction != "micro_token_mean":
        whole = count_denominator(
            mask,
            algorithm.reduction,
            group_ids=batch.group_id,
            l_max=schedule.l_max,
            lanes=batch.lane,
        )
    total: dict[str, Tensor] = {}
    for rows in map(slice, cuts, cuts[1:]):  # slices: no copies
        part = batch if splits == 1 else batch.rows(rows)
        loss, diagnostics = policy_loss(
            policy.log_prob(part),
            part.log_prob_old,
            advantage[rows],
            mask[rows],
            eps_low=algorithm.eps_low,
            eps_high=algorithm.eps_high,
            reduction=algorithm.reduction,
            denominator=splits if whole is None else whole[rows],
            group_ids=part.group_id,
            l_max=schedule.l_max,
            dual_clip=algorithm.dual_clip,
            lanes=part.lane,
        )
        if algorithm.kl_coef:
            # a mean over each lane's rows, summed over lanes, however it is split
            rows_of_lane = torch.bincount(batch.lane)[part.lane]
            kl = (policy.kl_reference(part) / rows_of_lane).sum()
            loss = loss + algorithm.kl_coef * kl
        loss.backward()
        diagnostics["loss"] = loss.detach()
        for name, value in diagnostics.items():
            total[name] = total.get(name, 0) + value
    return total


def minibatches(
    schedule: Schedule, batch: Rollout, generator: Any
) -> Iterator[Tensor | slice]:
    """The rows of every mini-batch: each epoch a fresh permutation, cut evenly."""
    if schedule.minibatches == 1 and schedule.epochs == 1:
        yield slice(None)  # the whole batch as it lies, without a copy
        return
    for _ in range(schedule.epochs):
        if schedule.minibatch_by == "response":
            order = torch.randperm(len(batch), generator=generator)
            yield from torch.tensor_split(order, min(schedule.minibatches, len(batch)))
            continue
        _, row = torch.unique(batch.group_id, return_inverse=True)
        groups = torch.randperm(int(row.max()) + 1, generator=generator)
        for chosen in torch.tensor_split(
            groups, min(schedule.minibatches, len(groups))
        ):
            yield torch.isin(row, chosen).nonzero()[:, 0]


def clip_gradients(schedule: Schedule, policy: Policy) -> None:
    """Clip by norm or by value. Raises ``Diverged`` on NaN or inf."""
    parameters = [p for p in policy.parameters() if p.grad is not None]
    if schedule.clip_value is not None:
        torch.nn.utils.clip_grad_value_(parameters, schedule.clip_value)
    norms = [torch.linalg.vector_norm(p.grad) for p in parameters]
    norm = torch.linalg.vector_norm(torch.stack(norms))
    if not norm.isfinite():
        raise _diverged(f"gradient norm is {norm}", schedule)
    if schedule.clip_norm is not None:
        torch.nn.utils.clip_grads_with_norm_(parameters, schedule.clip_norm, norm)


def _diverged(what: str, schedule: Schedule) -> Diverged:
    return Diverged(
        f"{what}; the weights are as before this update: lower lr={schedule.lr} or "
        "eps_high in a new run (the last checkpoint is whole)"
    )


def _optimiser(schedule: Schedule, parameters: list[Tensor]) -> torch.optim.Optimizer:
    if schedule.optimiser == "sgd":
        return torch.optim.SGD(parameters, lr=schedule.lr)
    return torch.optim.AdamW(
        parameters,
        lr=schedule.lr,
        betas=schedule.betas,
        weight_decay=schedule.weight_decay,
        fused=True,
    )
