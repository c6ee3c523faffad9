"""A run in a folder: resumed equals uninterrupted, and folders are not mixed up."""

import dataclasses
import json

import pytest
import torch

from dapo_lib import checkpoint
from dapo_lib.errors import BadInput, DamagedFile
from dapo_lib.experiments.arms import ARMS, changed
from dapo_lib.experiments.language import LanguageRun, session
from dapo_lib.train import Schedule

SMALL = Schedule(
    rollouts=4, prompts_per_rollout=4, group_size=4, minibatches=2, l_max=12
)
ARM = LanguageRun(algorithm=ARMS["dapo"], schedule=SMALL, evaluate_every=0)
CARRY = LanguageRun(
    algorithm=changed(ARMS["dapo"], surplus="carry", oversample=3.0),
    schedule=SMALL,
    evaluate_every=0,
)


def finish(folder, arm=ARM, seed=0, stop_after=None, resume=False):
    one = session(arm, seed, folder)
    for number, _ in enumerate(one.steps(one.prepare(resume)), start=1):
        if number == stop_after:
            break
    return one


def facts(folder):
    """Records without the clock, and the weights."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    for row in rows:
        row.pop("cpu_seconds")
    return rows


def weights(one):
    policy, _, state = one.run
    moments = state.optimiser.state_dict()["state"]
    flat = [v for each in moments.values() for v in each.values()]
    return [*policy.state_dict().values(), *flat]


@pytest.mark.parametrize("arm", [ARM, CARRY], ids=["drop", "carry"])
@pytest.mark.parametrize("stop_after", [1, 3])
def test_a_resumed_run_is_bit_equal(tmp_path, arm, stop_after):
    whole = finish(tmp_path / "whole", arm)
    finish(tmp_path / "cut", arm, stop_after=stop_after)
    resumed = finish(tmp_path / "cut", arm, resume=True)
    assert facts(tmp_path / "whole") == facts(tmp_path / "cut")
    pairs = zip(weights(whole), weights(resumed), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("stop_after", [2, 3])
def test_rare_checkpoints_lose_what_came_after_them_and_nothing_else(
    tmp_path, stop_after
):
    whole = finish(tmp_path / "whole")
    cut = dataclasses.replace(session(ARM, 0, tmp_path / "cut"), every=3)
    for number, _ in enumerate(cut.steps(cut.prepare(False)), start=1):
        if number == stop_after:
            break
    kept = sorted(p.stem for p in (tmp_path / "cut" / "checkpoints").glob("*.json"))
    assert kept == ["step-00000003"] * (stop_after == 3)
    resumed = dataclasses.replace(session(ARM, 0, tmp_path / "cut"), every=3)
    done = resumed.prepare(True)
    assert len(done) == 3 * len(kept)
    list(resumed.steps(done))
    assert checkpoint.latest(tmp_path / "cut" / "checkpoints").stem == "step-00000004"
    assert facts(tmp_path / "whole") == facts(tmp_path / "cut")
    pairs = zip(weights(whole), weights(resumed), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_two_checkpoints_are_kept_and_a_damaged_one_is_passed_over(tmp_path):
    finish(tmp_path / "whole")
    finish(tmp_path / "cut", stop_after=3)
    folder = tmp_path / "cut" / "checkpoints"
    assert len(list(folder.glob("*.json"))) == 2
    newest = checkpoint.latest(folder).with_suffix(".safetensors")
    newest.write_bytes(newest.read_bytes()[:-1])
    assert checkpoint.latest(folder).stem == "step-00000002"
    finish(tmp_path / "cut", resume=True)
    assert facts(tmp_path / "whole") == facts(tmp_path / "cut")


def test_a_folder_with_a_run_is_never_overwritten_or_mixed(tmp_path):
    finish(tmp_path, stop_after=1)
    with pytest.raises(BadInput, match="already holds a run"):
        finish(tmp_path)
    with pytest.raises(BadInput, match="other options"):
        finish(tmp_path, seed=1, resume=True)
    assert len(facts(tmp_path)) == 1


def test_resuming_a_finished_run_changes_nothing(tmp_path):
    finish(tmp_path)
    before = facts(tmp_path)
    finish(tmp_path, resume=True)
    assert facts(tmp_path) == before


def test_records_that_no_checkpoint_saw_are_cut_off_and_made_again(tmp_path):
    finish(tmp_path / "whole")
    finish(tmp_path / "cut", stop_after=2)
    path = tmp_path / "cut" / "metrics.jsonl"
    path.write_bytes(path.read_bytes() + b'{"rollout": 3, "kep')  # killed while adding
    finish(tmp_path / "cut", resume=True)
    assert facts(tmp_path / "whole") == facts(tmp_path / "cut")


@pytest.mark.parametrize("damage", ["cut", "flip", "gone"])
def test_damaged_records_are_named_and_never_mixed_with_new_ones(tmp_path, damage):
    finish(tmp_path, stop_after=2)
    path = tmp_path / "metrics.jsonl"
    data = path.read_bytes()
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(data[:-1])
    else:
        path.write_bytes(data[:20] + bytes([data[20] ^ 1]) + data[21:])
    with pytest.raises(DamagedFile, match=r"metrics\.jsonl: not as the last"):
        finish(tmp_path, resume=True)


def test_a_checkpoint_does_not_grow_with_the_run(tmp_path):
    finish(tmp_path, stop_after=2)
    first = (tmp_path / "checkpoints" / "step-00000002.json").stat().st_size
    finish(tmp_path, resume=True)
    last = (tmp_path / "checkpoints" / "step-00000004.json").stat().st_size
    assert abs(last - first) < 100
