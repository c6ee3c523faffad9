"""How cost per token and memory grow with responses and length, on the book's model.

Cost: CPU seconds a token at full length, over those of a reference point that is timed
again beside every point. Memory: the growth of the process's peak while sampling, over
the bytes of the keys and values of all tokens; each point in a process of its own.
Left out: memory where Linux does not report the peak.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from benchmarks.ours import BOOK, FullLength, timed
from dapo_lib.lm.model import Decoder
from dapo_lib.lm.tasks import DigitSum
from dapo_lib.rollout import Rollout

RESPONSES, LENGTHS = (64, 256, 1024, 4096), (16, 32, 64, 128, 256, 512)
GROUP, ROWS, REFERENCE = 16, 64, (256, 24)
TRAINED = 256  # responses of a point that are trained on, in mini-batches of 32
REPEATS = 3
SLACK = 10_000_000  # bytes: a smaller cache hides in what the heap has spare


def policy(length: int) -> FullLength:
    """The book's model with fresh weights, and room for `length` tokens."""
    task = DigitSum(0, l_max=length)
    positions = task.prompt_length + length
    config = BOOK.config.model_copy(update={"positions": positions})
    return FullLength(Decoder(config, torch.Generator().manual_seed(0)), task)


def sample(point: FullLength, responses: int) -> Rollout:
    """`responses` responses of full length."""
    drawn = point.task.draw(torch.tensor([responses // GROUP]))
    return point.sample(drawn, GROUP, torch.Generator().manual_seed(1))


def train(point: FullLength, rollout: Rollout) -> int:
    """Gradients of some mini-batches; the number of tokens."""
    rows = torch.arange(min(len(rollout), TRAINED))
    for part in rows.split(BOOK.batch):
        point.log_prob(rollout.rows(part)).sum().backward()
    return int(rollout.length[rows].sum())


def cost(responses: int, length: int) -> tuple[float, float]:
    """CPU seconds a token of sampling and of training."""
    point = policy(length)
    sampling, rollout = timed(lambda: sample(point, responses))
    training, tokens = timed(lambda: train(point, rollout))
    return sampling / int(rollout.length.sum()), training / tokens


def measure() -> list[dict[str, Any]]:
    """A row a point: relative cost per token, peak memory over the cache."""
    cost(*REFERENCE)  # the first call pays for what later ones share
    points = [("responses", n, REFERENCE[1]) for n in RESPONSES]
    points += [("length", ROWS, n) for n in LENGTHS]
    return [row(axis, responses, length) for axis, responses, length in points]


def row(axis: str, responses: int, length: int) -> dict[str, Any]:
    """One point of the plot. Sampling's ratio is the row's own, training's beside."""
    pairs = []
    for _ in range(REPEATS):
        here, there = cost(responses, length), cost(*REFERENCE)
        pairs.append([h / t for h, t in zip(here, there, strict=True)])
    sampling, training = zip(*pairs, strict=True)
    at = statistics.median(sampling)
    return {
        "work": f"scale: {responses} responses of {length}",
        "part": axis,
        "lengths": f"full: {length}",
        "peer": "{} responses of {}".format(*REFERENCE),
        "ratio_peer_ours": 1 / at,
        "ratio_ours_floor": at,
        "low": min(sampling),
        "high": max(sampling),
        "pairs": REPEATS,
        "training": statistics.median(training),
        "training_low": min(training),
        "training_high": max(training),
        "responses": responses,
        "length": length,
        "memory": memory(responses, length),
    }


def memory(responses: int, length: int) -> float | None:
    """Peak growth over the cache's own bytes, None where it cannot be told."""
    c = BOOK.config
    tokens = responses * (DigitSum.prompt_length + length - 1)
    own = 2 * c.layers * tokens * c.width * 4
    if own < SLACK or not Path("/proc/self/clear_refs").exists():
        return None
    command = [sys.executable, "-m", "benchmarks.scaling", str(responses), str(length)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout) / own


def peak(responses: int, length: int) -> int:
    """Bytes by which sampling raised this process's peak."""
    point = policy(length)
    sample(point, GROUP)  # loads what is loaded once
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = status("VmRSS")
    sample(point, responses)
    return status("VmHWM") - before


def status(name: str) -> int:
    """Bytes of a line of /proc/self/status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(x.split()[1]) * 1024 for x in lines if x.startswith(f"{name}:"))


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(peak(int(sys.argv[1]), int(sys.argv[2])))
