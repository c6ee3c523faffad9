"""Ours against TRL and against pure matrix products, on the same work in one run.

Prints ratios of process CPU seconds on one thread, A B A B, medians of paired ratios,
and writes `_build/bench.json`. Run it by `python -m benchmarks.run`. Left out: absolute
times, which say more about the machine than about the code.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import time
from pathlib import Path
from typing import NamedTuple

import torch

from benchmarks.addition import Addition, checkpoint
from benchmarks.floor import sampling_floor, training_floor
from dapo_lib.algorithm import Algorithm
from dapo_lib.files import write_bytes
from dapo_lib.lm.model import Decoder, ModelConfig
from dapo_lib.lm.policy import LMPolicy
from dapo_lib.rollout import Rollout
from dapo_lib.train import Schedule, advantages, minibatches, start, update

ROOT = Path(__file__).resolve().parent.parent
QWEN2 = dict(
    vocabulary=64,
    mlp="swiglu",
    norm="rms",
    norm_eps=1e-6,
    rope_base=10_000.0,
    qkv_bias=True,
    tied=True,
)
BIG = ModelConfig(**QWEN2, width=128, layers=4, hidden=512)  # 1.06 M parameters
SMALL = ModelConfig(**QWEN2, width=64, layers=2, hidden=256)  # 0.14 M parameters
ALGORITHM = Algorithm(dynamic_sampling=False, overlong="none")


class Work(NamedTuple):
    """One row of the bench: `batch` completions an update, `updates` a rollout."""

    name: str
    config: ModelConfig
    batch: int
    updates: int
    group_size: int
    l_max: int
    full: bool
    goal: float


WORKS = (
    Work("A 64x4 G8 L48", BIG, 64, 4, 8, 48, False, 3.9),
    Work("A 128x4 G16 L64", BIG, 128, 4, 16, 64, False, 5.5),
    Work("B 32x16 G16 L24", SMALL, 32, 16, 16, 24, False, 3.3),
    Work("A 64x4 G8 L48 full", BIG, 64, 4, 8, 48, True, 1.6),
    Work("A 128x4 G16 L64 full", BIG, 128, 4, 16, 64, True, 1.6),
)


class FullLength(LMPolicy):
    """Never ends early: the EOS logit is out of reach, as TRL's `suppress_tokens`."""

    def sample(self, prompts, group_size, generator) -> Rollout:
        """As the parent, with EOS suppressed while sampling."""
        eos, bias = self.task.vocabulary.eos_id, torch.zeros(64)
        bias[eos] = -torch.inf
        plain = self.model.logits
        self.model.logits = lambda x: plain(x) + bias
        try:
            return super().sample(prompts, group_size, generator)
        finally:
            del self.model.logits


class Ours:
    """The project's own loop on a work, one cycle at a time."""

    def __init__(self, work: Work, model: Decoder) -> None:
        self.work = work
        n = work.batch * work.updates // work.group_size
        self.schedule = Schedule(
            prompts_per_rollout=n,
            group_size=work.group_size,
            l_max=work.l_max,
            minibatches=work.updates,
            lr=1e-6,
        )
        self.task = Addition(1, l_max=work.l_max)
        policy = FullLength if work.full else LMPolicy
        self.policy = policy(model, self.task)
        generator = torch.Generator().manual_seed(2)
        self.state = start(ALGORITHM, self.schedule, self.policy, generator)
        self.seconds: list[float] = []
        self.to_sampling: list[float] = []
        self.to_training: list[float] = []
        self.floor: list[float] = []
        self.rollout: Rollout | None = None

    def cycle(self) -> None:
        """One rollout and its updates; then the matrix products of the same shapes."""
        sampling, rollout = timed(self._sample)
        training, _ = timed(lambda: self._train(rollout))
        self.seconds.append(sampling + training)
        self.rollout = rollout
        config, n = self.policy.model.config, self.schedule.prompts_per_rollout
        width = self.task.prompt_length
        least_sampling = timed(sampling_floor(config, rollout.length, n, width))[0]
        least_training = timed(training_floor(config, self._shapes(rollout)))[0]
        self.to_sampling.append(sampling / least_sampling)
        self.to_training.append(training / least_training)
        self.floor.append(least_sampling + least_training)

    def _sample(self) -> Rollout:
        prompts = self.task.draw(torch.tensor([self.schedule.prompts_per_rollout]))
        size, generator = self.schedule.group_size, self.state.generator
        return self.task.grade(self.policy.sample(prompts, size, generator))

    def _train(self, rollout: Rollout) -> None:
        reward = (rollout.length % 2).double()  # the reward that TRL is given
        rollout = rollout.graded(rollout.correct, reward)
        advantage = advantages(ALGORITHM, self.schedule, rollout)
        update(ALGORITHM, self.schedule, self.policy, self.state, rollout, advantage)

    def _shapes(self, rollout: Rollout) -> list[tuple[int, int]]:
        """Packed and predicted tokens of mini-batches cut as the loop cuts them."""
        shapes = []
        for rows in minibatches(self.schedule, rollout, torch.Generator()):
            part = rollout.rows(rows)
            prompts, fed = len(part.index.unique()), int((part.length - 1).sum())
            shapes.append((prompts * self.task.prompt_length + fed, prompts + fed))
        return shapes


def timed(function):
    """Process CPU seconds of a call, and its result."""
    began = time.process_time()
    result = function()
    return time.process_time() - began, result


def measure(work: Work, model: Decoder, cycles: int) -> list[dict]:
    """The rows of one work: TRL over ours, and ours over matrix products."""
    from benchmarks.trl_peer import run_trl

    ours = Ours(work, model)
    theirs, lengths = run_trl(
        model,
        Addition(1, l_max=work.l_max),
        batch=work.batch,
        updates=work.updates,
        group_size=work.group_size,
        l_max=work.l_max,
        cycles=cycles + 1,
        full=work.full,
        between=ours.cycle,
    )
    length = ours.rollout.length.double()
    said = (
        f"{'full' if work.full else 'realistic'}: mean {length.mean():.1f} of "
        f"{work.l_max}, {100 * ours.rollout.truncated.double().mean():.0f} % cut; "
        f"TRL mean {statistics.mean(lengths):.1f}"
    )
    pairs = [t / o for t, o in zip(theirs, ours.seconds, strict=True)]
    floor = [o / f for o, f in zip(ours.seconds, ours.floor, strict=True)]
    about = {"work": work.name, "lengths": said, "peer": "TRL 1.16.0"}
    main = about | spread("ratio_peer_ours", pairs) | {"goal": work.goal}
    main["ratio_ours_floor"] = statistics.median(floor[1:])
    parts = {"sampling": ours.to_sampling, "training": ours.to_training}
    return [main] + [
        about
        | {"work": f"{work.name}: {part}", "peer": "matrix products"}
        | spread("ratio_ours_floor", ratios)
        for part, ratios in parts.items()
    ]


def spread(name: str, ratios: list[float]) -> dict[str, float]:
    """Median, smallest and largest of paired ratios, the first (a warm-up) dropped."""
    kept = ratios[1:]
    return {name: statistics.median(kept), "low": min(kept), "high": max(kept)}


def main() -> None:
    """Measure the works that the arguments name, print and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="works whose name contains this")
    parser.add_argument("--cycles", type=int, default=5, help="paired ratios a work")
    parser.add_argument("--out", default=str(ROOT / "_build" / "bench.json"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows, models = [], {}
    for work in WORKS:
        if arguments.only not in work.name:
            continue
        key = (work.config, work.l_max)
        if key not in models:
            models[key] = checkpoint(*key)
        rows += measure(work, copy.deepcopy(models[key]), arguments.cycles)
        for row in rows[-3:]:
            print(line(row), flush=True)
    write_bytes(arguments.out, json.dumps(rows, indent=1).encode() + b"\n")


def line(row: dict) -> str:
    """One row for the terminal."""
    name = "ratio_peer_ours" if "goal" in row else "ratio_ours_floor"
    what = f"{row['peer']} / ours" if "goal" in row else f"ours / {row['peer']}"
    goal = f"  goal {row['goal']}" if "goal" in row else ""
    median, low, high = row[name], row["low"], row["high"]
    text = f"{row['work']:32} {what:24} {median:.2f} [{low:.2f}, {high:.2f}]{goal}"
    return text + (f"\n    {row['lengths']}" if "goal" in row else "")


if __name__ == "__main__":
    main()
