"""Run a `dapo` command again and again, each time killed at a random moment.

python kills.py RUNS KILLS SEED COMMAND...    prints one JSON object at last

In COMMAND, {} stands for a run's name: `whole` is left alone and timed, then each of
RUNS is killed KILLS times and left to its end. Everything is imported and prepared
once; each process is a fork, so that the moments lie in the run and not before it.
Left out: judgement, which is test_kill.py's.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import time

from dapo_lib.cli import main


def begin(arguments: list[str]) -> int:
    """A process of its own that runs the command."""
    pid = os.fork()
    if pid == 0:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            code = main(arguments)
        os._exit(code)
    return pid


def ended(pid: int, deadline: float) -> int | None:
    """The exit code once there is one; None at the deadline."""
    while time.monotonic() < deadline:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    return None


def warm(command: list[str]) -> None:
    """What a run prepares before it trains, kept in memory for all the forks."""
    if "hf" in command:  # in an environment of its own, which lacks the rest
        import transformers  # noqa: F401

        from dapo_lib.experiments import huggingface  # noqa: F401

        return
    from dapo_lib.candidate import recipe
    from dapo_lib.data.embedded import load_embedded
    from dapo_lib.experiments import candidate, language  # noqa: F401

    data = load_embedded()
    recipe.prepare(data.train, data.test, "verify")


def killed(kills: int, seconds: float, rng: random.Random, command: list[str]) -> dict:
    """One run, killed so often, then ended; those that ended before count too."""
    done = {"killed": 0, "ended": 0}
    while done["killed"] < kills:
        pid = begin(command)
        code = ended(pid, time.monotonic() + rng.uniform(0, seconds))
        if code is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            done["killed"] += 1
        else:
            assert code == 0, code
            done["ended"] += 1
            break
    assert ended(begin(command), float("inf")) == 0
    return done


def run(runs: int, kills: int, seed: int, command: list[str]) -> dict:
    """Runs until each was killed so often or had ended; how often, and the seconds."""
    warm(command)
    rng, began = random.Random(seed), time.monotonic()
    killed(0, 0, rng, named(command, "whole"))
    seconds, found, number = time.monotonic() - began, [], 0
    while sum(f["killed"] for f in found) < runs * kills:
        found.append(killed(kills, seconds, rng, named(command, f"run-{number}")))
        number += 1
        if found[-1]["ended"]:  # the machine is faster now: kill earlier
            seconds *= 0.7
    total = {k: sum(f[k] for f in found) for k in ("killed", "ended")}
    return {**total, "runs": number, "seconds": seconds}


def named(command: list[str], name: str) -> list[str]:
    """The command for the run of that name."""
    return [part.replace("{}", name) for part in command]


if __name__ == "__main__":
    runs, kills, seed, *command = sys.argv[1:]
    print(json.dumps(run(int(runs), int(kills), int(seed), command)), flush=True)
