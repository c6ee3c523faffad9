"""Two runs into one --out: the second stops at once, the first loses nothing.

The first is held by this test or by a process that says when it holds; no clock.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dapo_lib.cli import main
from dapo_lib.files import sole_writer

ARGUMENTS = {
    "lm": "--setting lm --iterations 1 --prompts-per-step 2 --group-size 2 --l-max 8",
    "hf": "--setting hf --model nowhere --offline --data nothing.jsonl",
    "derivation": "--steps 2 --prompts-per-step 1 --offline",
    "derivation resumed": "--steps 2 --prompts-per-step 1 --offline --resume",
    "seed": "--recipe seed --steps 0 --maximum-examples 16 --offline",
}
HOLD = """
import sys
from pathlib import Path
from dapo_lib.files import sole_writer

with sole_writer(Path(sys.argv[1]), folder=True):
    print("held", flush=True)
    sys.stdin.read()
"""


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """Every path below a folder, with what is in it."""
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None
        for p in folder.rglob("*")
    }


def command(setting: str, out: Path) -> list[str]:
    return ["train", *ARGUMENTS[setting].split(), "--out", str(out)]


@pytest.mark.parametrize("setting", ARGUMENTS)
def test_the_second_stops_with_one_line_and_touches_nothing(tmp_path, dapo, setting):
    out = tmp_path / "run"
    folder = setting in ("lm", "hf")
    with sole_writer(out, folder=folder):
        before = snapshot(tmp_path)
        code, printed, err = dapo(*command(setting, out))
        assert snapshot(tmp_path) == before
    assert code == 2 and printed == ""
    assert err == (
        f"dapo: error: --out: another run is writing {out}; wait until it has ended, "
        "or choose another --out\n"
    )


def test_a_run_holds_its_folder_and_ends_as_if_alone(tmp_path, monkeypatch):
    """A second `dapo train --resume` from within the first, after each record."""
    from dapo_lib.experiments.session import Session

    steps, codes, out = Session.steps, [], tmp_path / "run"

    def watched(self, done):
        for record in steps(self, done):
            before = snapshot(out)
            codes.append(main([*command("lm", out), "--resume"]))
            assert snapshot(out) == before
            yield record

    monkeypatch.setattr(Session, "steps", watched)
    assert main(command("lm", out)) == 0
    assert codes == [2, 2]  # the warm start's evaluation, and one rollout
    monkeypatch.undo()
    assert main([*command("lm", out), "--resume"]) == 0
    assert {"config.json", "metrics.jsonl", "result.json"} <= set(os.listdir(out))
    assert ".lock" not in os.listdir(out)


def test_bad_input_leaves_no_folder_behind(tmp_path, dapo):
    code, _, err = dapo(*command("hf", tmp_path / "deep" / "run"))
    assert code == 2 and "another run" not in err
    assert snapshot(tmp_path) == {}


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is POSIX")
def test_a_killed_run_is_not_in_the_way(tmp_path, dapo):
    out = tmp_path / "run"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(out)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with holder:
        assert holder.stdout.readline() == b"held\n"
        assert dapo(*command("lm", out), "--resume")[0] == 2
        holder.send_signal(signal.SIGKILL)
        assert holder.wait() == -signal.SIGKILL
    assert (out / ".lock").exists()  # it had no time to clear up
    code, _, err = dapo(*command("lm", out), "--resume")
    assert code == 0, err
    assert not (out / ".lock").exists()
