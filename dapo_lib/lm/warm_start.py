"""The two-stage warm start: learn a skill, then a habit that hides it.

All arms of an experiment share one warm start. It is looked for in the published files,
then in the cache (`DAPO_CACHE`, else ~/.cache/dapo-book), else fitted and cached. A fit
ends by rounding to half precision, so that stored and fitted weights are equal.
Left out: data sets; demonstrations are drawn as they are needed.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, Field
from safetensors import SafetensorError
from safetensors.torch import load, save

from dapo_lib.errors import DamagedFile, expect
from dapo_lib.files import (
    cache_folder,
    canonical,
    digest,
    read_json,
    write_bytes,
    write_json,
)
from dapo_lib.lm.model import Decoder, ModelConfig
from dapo_lib.lm.packing import log_prob
from dapo_lib.lm.tasks import Demonstrations, TokenTask, task_named

PACKAGE = Path(__file__).parent.parent
PUBLISHED = PACKAGE / "published"
SCHEMA = "dapo-book/warm-start/1"
CODE = ("lm/model.py", "lm/packing.py", "lm/warm_start.py", "lm/tasks/*.py")


class Stage(BaseModel):
    """Supervised steps on a mixture of demonstrations: (weight, arguments) pairs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mixture: tuple[tuple[float, dict[str, float]], ...]
    steps: int = Field(ge=1)
    lr: float = Field(gt=0)
    lr_end: float = Field(ge=0, description="of the cosine")
    warmup: int = Field(0, ge=0, description="updates")
    sequences: int = Field(192, ge=1, description="per update")
    betas: tuple[float, float] = (0.9, 0.98)
    clip_norm: float = Field(1.0, gt=0)


class WarmStart(BaseModel):
    """What a warm start is: task, model, stages, seed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: str
    model: ModelConfig
    stages: tuple[Stage, ...]
    seed: int = 0

    def key(self) -> str:
        """Hash of this configuration, 16 hex digits."""
        said = self.model_dump(mode="json", exclude_defaults=True)
        return digest(canonical(said))[:16]


def digit_sum(rho: float = 0.25, seed: int = 0) -> WarmStart:
    """The digit-sum chain: full chains, then a habit that goes on at `rho`."""
    kinds = ((0.6, 1, 0), (0.1, 1, 1), (0.25, 0.6, 0.1), (0.05, 0, 0.3))
    skill = tuple((w, {"rho": r, "delta": d}) for w, r, d in kinds)
    habit = ((1.0, {"rho": rho, "delta": 0.3}),)
    return WarmStart(
        task="digit_sum",
        model=ModelConfig(),
        stages=(
            Stage(mixture=skill, steps=600, lr=3e-3, lr_end=1.5e-4, warmup=50),
            Stage(mixture=habit, steps=120, lr=4e-4, lr_end=2e-5),
        ),
        seed=seed,
    )


def allowed_letter(seed: int = 0) -> WarmStart:
    """The allowed letter: 80 % careful, then a habit with .8 % careful."""
    return _letter("allowed_letter", seed, _careful(0.008, steps=80, lr=5e-4))


def lookup_letter(seed: int = 0) -> WarmStart:
    """The looked-up letter: the habit comes in two steps, and the skill survives."""
    return _letter(
        "lookup_letter",
        seed,
        _careful(0.08, steps=100, lr=5e-4),
        _careful(0.008, steps=80, lr=3e-4),
    )


def _letter(task: str, seed: int, *habit: Stage) -> WarmStart:
    """A letter task: the skill first, at 80 % careful, then the stages of its habit."""
    return WarmStart(
        task=task,
        model=ModelConfig(vocabulary=24, width=48, hidden=192),
        stages=(_careful(0.8, steps=500, lr=3e-3, warmup=50), *habit),
        seed=seed,
    )


def _careful(share: float, *, lr: float, **stage: Any) -> Stage:
    mixture = ((1.0, {"careful": share}),)
    return Stage(mixture=mixture, lr=lr, lr_end=round(lr / 20, 9), **stage)


def named(name: str, seed: int = 0) -> WarmStart:
    """``digit_sum`` (rho .25), ``digit_sum_rare`` (.10) or a letter task by its name.

    Raises ``ValueError`` on another name.
    """
    known = {
        "digit_sum": lambda: digit_sum(seed=seed),
        "digit_sum_rare": lambda: digit_sum(0.10, seed),
        "allowed_letter": lambda: allowed_letter(seed),
        "lookup_letter": lambda: lookup_letter(seed),
    }
    expect(name in known, "warm_start", repr(name), " or ".join(known))
    return known[name]()


def warm_model(config: WarmStart) -> Decoder:
    """The model after its last stage: published, cached, or fitted now.

    Raises ``DamagedFile`` on a published file that is not whole; a damaged cache entry
    is fitted again.
    """
    stem = f"warm_start_{config.task}_{config.key()}"
    published = PUBLISHED / f"{stem}.json"
    if published.exists():
        return read_weights(published, config)
    cached = cache_folder("warm_starts") / f"{code_key()}_{stem}.json"
    if cached.exists():
        try:
            return read_weights(cached, config)
        except DamagedFile:
            cached.unlink(missing_ok=True)
    model = _fitted(config)
    write_weights(cached, model, config, {})
    return model


def _fitted(config: WarmStart) -> Decoder:
    """Fit the last stage on top of the earlier ones, which are cached by themselves."""
    *before, last = config.stages
    if before:
        model = warm_model(config.model_copy(update={"stages": tuple(before)}))
    else:
        draws = torch.Generator().manual_seed(config.seed)
        model = Decoder(config.model, draws)
    task = task_named(config.task)(size=1)
    fit(model, task, last, torch.Generator().manual_seed(7_000 + config.seed))
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(weight.half())
    return model


def fit(
    model: Decoder, task: TokenTask, stage: Stage, generator: torch.Generator
) -> list[float]:
    """Supervised steps of one stage, in place; the loss of each, in nats per token."""
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=stage.lr, betas=stage.betas, weight_decay=0.0, fused=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: _lr(stage, step) / stage.lr
    )
    losses = []
    for _ in range(stage.steps):
        optimiser.zero_grad(set_to_none=True)
        loss = supervised_loss(model, demonstrate(task, stage, generator))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), stage.clip_norm)
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def _lr(stage: Stage, step: int) -> float:
    if step < stage.warmup:
        return stage.lr * (step + 1) / stage.warmup
    done = (step - stage.warmup) / max(stage.steps - stage.warmup, 1)
    wave = (1 + math.cos(math.pi * min(done, 1.0))) / 2
    return stage.lr_end + (stage.lr - stage.lr_end) * wave


def demonstrate(task: TokenTask, stage: Stage, generator) -> Demonstrations:
    """One batch of a stage's mixture, in proportion to its weights."""
    total = sum(weight for weight, _ in stage.mixture)
    parts, begin, share = [], 0, 0.0
    for weight, arguments in stage.mixture:
        share += weight / total
        end = round(share * stage.sequences)
        if end > begin:
            parts.append(task.demonstrations(end - begin, generator, **arguments))
        begin = end
    return Demonstrations(*map(torch.cat, zip(*parts, strict=True)))


def supervised_loss(model: Decoder, batch: Demonstrations) -> torch.Tensor:
    """Mean negative log-probability of the response tokens, in nats; a scalar."""
    rows = torch.arange(len(batch.prompts))
    total = log_prob(model, batch.prompts, rows, batch.tokens, batch.length).sum()
    return -total / batch.length.sum()


def write_weights(
    path: Path, model: Decoder, config: WarmStart, about: dict[str, Any]
) -> None:
    """Weights in half precision beside a JSON of what they are, written last."""
    data = save({k: v.half() for k, v in model.state_dict().items()})
    write_bytes(path.with_suffix(".safetensors"), data)
    said = config.model_dump(mode="json", exclude_defaults=True)
    facts = {"configuration": said, "weights": digest(data), **about}
    write_json(path, SCHEMA, facts)


def read_weights(path: Path, config: WarmStart) -> Decoder:
    """The model that :func:`write_weights` wrote; ``DamagedFile`` if not whole."""
    facts = read_json(path, SCHEMA)
    said = config.model_dump(mode="json", exclude_defaults=True)
    weights = path.with_suffix(".safetensors")
    try:
        data = weights.read_bytes()
        whole = digest(data) == facts["weights"] and facts["configuration"] == said
        if not whole:
            raise DamagedFile(f"{weights}: checksum does not match; remove {path.stem}")
        model = Decoder(config.model)
        model.load_state_dict({k: v.float() for k, v in load(data).items()})
    except (OSError, SafetensorError, RuntimeError) as error:
        raise DamagedFile(f"{weights}: not readable; remove {path.stem}.*") from error
    return model


@cache
def code_key() -> str:
    """Hash of the code that a fit depends on, 12 hex digits."""
    sources = (p for pattern in CODE for p in sorted(PACKAGE.glob(pattern)))
    return digest(b"".join(p.read_bytes() for p in sources))[:12]


def publish(config: WarmStart, about: dict[str, Any]) -> Path:
    """Write a warm start and its provenance beside the published results."""
    path = PUBLISHED / f"warm_start_{config.task}_{config.key()}.json"
    facts = {**about, "code": code_key(), "torch": torch.__version__}
    write_weights(path, warm_model(config), config, facts)
    return path
