"""Two thousand iterations in either setting: memory is flat, nothing piles up."""

from __future__ import annotations

import gc
import resource
from pathlib import Path

import pytest

from dapo_lib.candidate import recipe
from dapo_lib.checkpoint import Keeper
from dapo_lib.data.embedded import load_embedded
from dapo_lib.experiments.arms import ARMS
from dapo_lib.experiments.language import LanguageRun, session
from dapo_lib.train import Schedule

pytestmark = pytest.mark.soak
ITERATIONS, WARM, WITHIN = 2000, 400, 0.02


def resident() -> float:
    """Bytes of memory that this process holds now."""
    gc.collect()
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except FileNotFoundError:
        pytest.skip("needs /proc: elsewhere only the peak is known")
    return pages * resource.getpagesize()


def flat(sizes: list[float]) -> None:
    """Every size within 2 % of the first."""
    drift = [size / sizes[0] - 1 for size in sizes]
    print([f"{size / 1e6:.1f} MB" for size in sizes], f"{max(drift):+.2%}")
    assert max(map(abs, drift)) <= WITHIN


def test_the_language_setting_with_records_and_checkpoints(tmp_path):
    schedule = Schedule(
        rollouts=ITERATIONS, prompts_per_rollout=2, group_size=4, minibatches=1,
        l_max=12, lr=1e-6,
    )  # fmt: skip
    arm = LanguageRun(algorithm=ARMS["dapo"], schedule=schedule, evaluate_every=0)
    one = session(arm, 0, tmp_path)
    sizes: list[float] = []
    for record in one.steps(one.prepare(resume=False)):
        if record["rollout"] % WARM == 0:
            sizes.append(resident())
    assert len(sizes) == ITERATIONS // WARM and one.run.state.rollouts == ITERATIONS
    assert one.run.state.updates > ITERATIONS // 2
    assert len(list((tmp_path / "checkpoints").iterdir())) == 4
    flat(sizes)


def test_the_candidate_setting_with_checkpoints(tmp_path):
    data = load_embedded()
    bench = recipe.prepare(data.train[:200], data.test[:50], "verify")
    schedule = recipe.schedule_of(
        "dapo", steps=ITERATIONS, prompts_per_step=4, group_size=4, lr=0.001
    )
    sizes: list[float] = []

    class Watched(Keeper):
        def due(self, rollout: int, last: bool) -> bool:
            if rollout % WARM == 0:
                sizes.append(resident())
            return super().due(rollout, last)

    keeper = Watched(tmp_path, "a hash")
    done = recipe.run(bench, recipe.ARMS["dapo"][0], schedule, range(10), keeper=keeper)
    assert float(done.rollouts.min()) >= ITERATIONS * 16
    assert len(sizes) == ITERATIONS // WARM and len(list(tmp_path.iterdir())) == 4
    flat(sizes)
