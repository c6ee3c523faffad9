"""Killed at any named moment and resumed: bit-equal to the run that never stopped.

Both settings, in one process: the "kill" is an exception that nothing catches, after
which every object is built anew. tests/soak kills real processes.
"""

from __future__ import annotations

import json
import random
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch

from dapo_lib import checkpoint
from dapo_lib import train as loop
from dapo_lib.candidate import recipe
from dapo_lib.candidate.policy import CandidatePolicy
from dapo_lib.candidate.recipe import ARMS as CANDIDATE_ARMS
from dapo_lib.checkpoint import Keeper
from dapo_lib.data.embedded import load_embedded
from dapo_lib.errors import BadInput, DamagedFile
from dapo_lib.experiments.arms import ARMS, changed
from dapo_lib.experiments.language import LanguageRun, session
from dapo_lib.lm.policy import LMPolicy
from dapo_lib.train import Schedule

SMALL = Schedule(
    rollouts=5, prompts_per_rollout=4, group_size=4, minibatches=2, l_max=12
)
# refills in most rollouts, and groups that wait from one batch to the next
REFILLS = changed(ARMS["dapo"], surplus="carry", oversample=3.0, max_rounds=4)
LANGUAGE = LanguageRun(algorithm=REFILLS, schedule=SMALL, evaluate_every=0)
MOMENTS = {
    "sampling": (None, "sample"),
    "an update": (loop, "clip_gradients"),
    "the tensors' write": (checkpoint, "write_bytes"),
    "the JSON's write": (checkpoint, "write_json"),
}


class Killed(BaseException):
    """As SIGKILL: no `except Exception` sees it."""


def kill_at(monkeypatch, moment: str, call: int, policy: type) -> None:
    """Let the `call`-th call of the function behind a moment be the last."""
    owner, name = MOMENTS[moment]
    owner = policy if owner is None else owner
    inner, calls = getattr(owner, name), iter(range(1, 10**6))

    def last(*arguments, **options):
        if next(calls) == call:
            raise Killed
        return inner(*arguments, **options)

    monkeypatch.setattr(owner, name, last)


class Language:
    """The language-model setting in a folder."""

    policy = LMPolicy

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self) -> None:
        self.session = session(LANGUAGE, 3, self.folder)
        for _ in self.session.steps(self.session.prepare(resume=True)):
            pass

    def facts(self):
        policy, _, state = self.session.run
        lines = (self.folder / "metrics.jsonl").read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        moments = state.optimiser.state_dict()["state"].values()
        tensors = [*policy.state_dict().values(), state.generator.get_state()]
        tensors += [v for each in moments for v in each.values()]
        return [{**r, "cpu_seconds": 0} for r in rows], tensors


@pytest.fixture(scope="module")
def bench():
    data = load_embedded()
    return recipe.prepare(data.train[:60], data.test[:20], "verify")


class Candidate:
    """The candidate setting, three seeds side by side."""

    policy = CandidatePolicy

    def __init__(self, folder: Path, bench) -> None:
        self.folder, self.bench = folder, bench

    def run(self) -> None:
        schedule = recipe.schedule_of(
            "dapo", steps=11, prompts_per_step=4, group_size=4, lr=0.05
        )
        algorithm = changed(CANDIDATE_ARMS["dapo"][0], surplus="carry", oversample=2.0)
        keeper = Keeper(self.folder, "a hash", every=2)
        seeds = (5, 6, 7)
        self.done = recipe.run(
            self.bench, algorithm, schedule, seeds, every=3, keeper=keeper
        )

    def facts(self):
        done = replace(self.done, seconds=0.0)
        exact = [getattr(e, f.name) for e in (done.test, done.curve.exact)
                 for f in fields(e)]  # fmt: skip
        plain = [done.weight, done.rollouts, done.prompts, done.tokens, done.kept]
        curve = [done.curve.steps, done.curve.rollouts]
        return [done.seeds, done.exhausted], [*exact, *plain, *curve]


@pytest.fixture(params=["language", "candidate"], scope="module")
def setting(request, bench):
    """Makes a run of a setting in a folder."""

    def make(folder: Path):
        return (
            Language(folder)
            if request.param == "language"
            else Candidate(folder, bench)
        )

    return make


@pytest.fixture(scope="module")
def whole(setting, tmp_path_factory):
    """A run of the setting that nothing interrupted."""
    run = setting(tmp_path_factory.mktemp("whole"))
    run.run()
    return run


def same(one, other) -> bool:
    (plain, tensors), (plain_2, tensors_2) = one.facts(), other.facts()
    pairs = zip(tensors, tensors_2, strict=True)
    return plain == plain_2 and all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize(
    ("moment", "call"),
    [
        ("sampling", 4),  # of a refill, see below
        ("an update", 5),
        ("the tensors' write", 1),  # before there is a checkpoint
        ("the JSON's write", 3),
    ],
)
def test_killed_at_a_moment_and_resumed_is_bit_equal(
    tmp_path, setting, whole, moment, call, monkeypatch
):
    cut = setting(tmp_path)
    with monkeypatch.context() as patch:
        kill_at(patch, moment, call, cut.policy)
        with pytest.raises(Killed):
            cut.run()
    cut = setting(tmp_path)
    cut.run()
    assert same(whole, cut)


def test_same_seed_twice_is_bit_equal(tmp_path, setting, whole):
    again = setting(tmp_path)
    again.run()
    assert same(whole, again)
    with torch.no_grad():
        again.facts()[1][0].view(-1)[0] += 1e-3
    assert not same(whole, again)  # the comparison can fail


def test_refilling_and_waiting_groups_were_part_of_it(tmp_path):
    run = Language(tmp_path)
    run.run()
    rows, _ = run.facts()
    _, _, state = run.session.run
    assert max(row["rounds"] for row in rows) > 1
    assert state.sampler.buffer is not None


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """The folder of a finished language run with its two checkpoints."""
    run = Language(tmp_path_factory.mktemp("kept"))
    run.run()
    return run.folder / "checkpoints"


def test_the_last_two_are_kept(kept):
    names = sorted(p.name for p in kept.iterdir())
    stems = ("step-00000004", "step-00000005")
    assert names == [f"{s}.{e}" for s in stems for e in ("json", "safetensors")]


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_a_damaged_checkpoint_is_named_and_never_half_loaded(kept, tmp_path, suffix):
    newest = checkpoint.latest(kept)
    for path in (newest, newest.with_suffix(".safetensors")):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    target = tmp_path / f"{newest.stem}{suffix}"
    data, rng = target.read_bytes(), random.Random(0)
    one = session(LANGUAGE, 3, tmp_path / "run")
    policy, task, state = one.run
    before = [v.clone() for v in policy.state_dict().values()]
    value = json.loads(newest.read_bytes())
    for number, damaged in enumerate(damages(data, rng)):
        target.write_bytes(damaged)
        if suffix == ".json" and _json(damaged) == value:
            continue  # the flip is in white space: the same checkpoint
        with pytest.raises(DamagedFile, match=newest.stem):
            checkpoint.load(tmp_path / newest.name, policy, state, task, config=one.key)
        assert checkpoint.latest(tmp_path) is None, number
    after = policy.state_dict().values()
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert task.cursor == 0 and state.rollouts == 0


def damages(data: bytes, rng: random.Random):
    """A file cut at ten places, and with one of fifty bits flipped."""
    for part in range(10):
        yield data[: len(data) * part // 10]
    for _ in range(50):
        flipped = bytearray(data)
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        yield bytes(flipped)


def _json(data: bytes):
    try:
        return json.loads(data)
    except ValueError:
        return None


def test_the_older_checkpoint_serves_where_the_newest_is_damaged(
    tmp_path, setting, whole
):
    cut = setting(tmp_path)
    cut.run()
    newest = max(cut.folder.rglob("step-*.safetensors"))
    newest.write_bytes(newest.read_bytes()[:-1])
    again = setting(cut.folder)
    again.run()
    assert same(whole, again)


def test_leftovers_of_a_killed_write_are_cleared_and_nothing_else(tmp_path):
    run = Language(tmp_path)
    run.run()
    inner = tmp_path / "checkpoints"
    leftovers = [inner / ".step-00000005.json.ab12cd_9", tmp_path / ".a.json.abcdefgh"]
    for path in leftovers:
        path.write_bytes(b"{")
    (tmp_path / ".gitignore").write_text("*")
    Language(tmp_path).run()
    assert not any(p.exists() for p in leftovers)
    assert (tmp_path / ".gitignore").exists()


def test_a_checkpoint_of_other_options_is_refused(kept, tmp_path):
    one = session(LANGUAGE, 4, tmp_path)
    policy, task, state = one.run
    with pytest.raises(BadInput, match="another configuration"):
        checkpoint.load(checkpoint.latest(kept), policy, state, task, config=one.key)
    assert state.rollouts == 0
