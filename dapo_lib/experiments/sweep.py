"""A grid of runs through joblib: cached by configuration and code, resumable, paired.

Left out: what a run does. A job is a frozen configuration and a function of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
from tqdm import tqdm

from dapo_lib.errors import BadInput, DamagedFile, LostWorker, expect
from dapo_lib.experiments.provenance import code_hash
from dapo_lib.files import cache_folder, canonical, digest, read_json, write_json

SCHEMA = "dapo-book/run/1"
WAVE = 4  # jobs a Ray worker gets before their results are stored where they were asked


@dataclass(frozen=True)
class Job:
    """One run: JSON configuration, and a module-level function that returns JSON."""

    config: dict[str, Any]
    run: Callable[[dict[str, Any]], dict[str, Any]]

    @property
    def key(self) -> str:
        """Hash of the configuration, the function's name and the library's code."""
        name = f"{self.run.__module__}.{self.run.__qualname__}"
        return digest(canonical([name, self.config, code_hash()]))[:32]


def cached(key: str, folder: Path) -> dict[str, Any] | None:
    """The stored result under a job's key, or None; a damaged entry is absent."""
    try:
        return read_json(folder / f"{key}.json", SCHEMA)["result"]
    except (BadInput, DamagedFile):
        return None


def run_cached(job: Job, folder: Path, key: str | None = None) -> dict[str, Any]:
    """The result of a job, computed if need be; stored before it is returned.

    `key` is the job's, where it was taken in another process.
    """
    key = key or job.key
    found = cached(key, folder)
    if found is not None:
        return found
    result = job.run(job.config)
    _keep(key, job, result, folder)
    return result


def _keep(key: str, job: Job, result: dict[str, Any], folder: Path) -> None:
    path = folder / f"{key}.json"
    write_json(path, SCHEMA, {"config": job.config, "result": result})


def sweep(
    jobs: Sequence[Job],
    *,
    workers: int | None = None,
    folder: Path | None = None,
    backend: str = "loky",
    progress: bool = True,
) -> list[dict[str, Any]]:
    """Results of all jobs in their order; finished ones come from the cache.

    Every worker stores its own result, so that an interrupted or killed sweep resumes
    where it stood, and two sweeps may share a folder. Raises ``ValueError`` on
    workers < 1, ``LostWorker`` where a process died, ``BadInput`` where the folder
    cannot be written.
    """
    count = workers or min(os.cpu_count() or 1, max(1, len(jobs)))
    expect(count >= 1, "workers", workers, "at least 1")
    folder = folder or cache_folder("runs")
    keys = [job.key for job in jobs]
    found = {key: cached(key, folder) for key in keys}
    todo = {k: j for k, j in zip(keys, jobs, strict=True) if found[k] is None}
    bar = tqdm(total=len(found), initial=len(found) - len(todo), disable=not progress)
    with bar:
        for key, result in _run_all(todo, folder, count, backend):
            found[key] = result
            # a worker elsewhere stored it elsewhere
            if backend == "ray" and cached(key, folder) is None:
                _keep(key, todo[key], result, folder)
            bar.update()
    return [found[key] for key in keys]


def _run_all(jobs: dict[str, Job], folder: Path, workers: int, backend: str):
    if workers == 1:
        for key, job in jobs.items():
            yield key, run_cached(job, folder, key)
        return
    tasks = [joblib.delayed(_keyed)(key, job, folder) for key, job in jobs.items()]
    try:
        if backend == "ray":
            yield from _waves(tasks, workers)
        else:
            yield from joblib.Parallel(
                n_jobs=workers, backend=backend, return_as="generator_unordered"
            )(tasks)
    except Exception as error:
        if not isinstance(error, (BrokenProcessPool, *_lost(backend))):
            raise
        raise LostWorker(  # killed from outside, or out of memory
            f"sweep: a worker process died; finished runs are kept in {folder}: run "
            "again to go on, with fewer --workers if memory ran out"
        ) from error


def _waves(tasks: list[Any], workers: int):
    """Some tasks a worker at a time: Ray's joblib backend returns all or nothing."""
    size = workers * WAVE
    for at in range(0, len(tasks), size):
        yield from joblib.Parallel(n_jobs=workers, backend="ray", batch_size=1)(
            tasks[at : at + size]
        )


def _lost(backend: str) -> tuple[type[BaseException], ...]:
    """What a backend raises for a worker that is gone."""
    if backend != "ray":
        return ()
    from ray import exceptions

    return (exceptions.RayActorError, exceptions.WorkerCrashedError)


def _keyed(key: str, job: Job, folder: Path) -> tuple[str, dict[str, Any]]:
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)
    return key, run_cached(job, folder, key)
