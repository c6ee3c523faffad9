"""A sweep on Ray: `python ray_sweep.py FOLDER victim|rest`; prints JSON.

`victim`: the job with x = 5 kills its worker once the others are done; `rest`: the same
jobs again. Left out: training, which a sweep does not look into.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from dapo_lib.errors import DapoError
from dapo_lib.experiments.backends import backend
from dapo_lib.experiments.sweep import Job, sweep


def work(config):
    """Square a number; the victim waits for the others' results and dies."""
    folder = Path(config["folder"])
    (folder / f"ran-{config['x']}-{os.getpid()}-{time.time_ns()}").touch()
    if config["x"] == 5 and not (folder / "killed").exists():
        while len(list((folder / "cache").glob("*.json"))) < 5:
            time.sleep(0.05)
        (folder / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"y": config["x"] ** 2, "pid": os.getpid()}


def main(folder):
    """Run six jobs on two local workers."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    jobs = [Job({"x": x, "folder": folder}, work) for x in range(6)]
    out = {}
    with backend("ray", None, 2) as name:
        try:
            done = sweep(
                jobs, workers=2, backend=name, folder=Path(folder) / "cache",
                progress=False,
            )  # fmt: skip
            out["y"] = [r["y"] for r in done]
            out["workers"] = len({r["pid"] for r in done} - {os.getpid()})
        except DapoError as error:
            out["lost"] = f"{type(error).__name__}: {error}"
    out["stored"] = len(list((Path(folder) / "cache").glob("*.json")))
    out["calls"] = len(list(Path(folder).glob("ran-*")))
    print("RESULT " + json.dumps(out))


if __name__ == "__main__":
    main(sys.argv[1])
