"""Where a sweep's workers live: processes of this machine, or a Ray cluster.

Left out: a scheduler of our own. joblib talks to both. On a cluster, every node needs
this library; results come back to the machine that asked and are stored there too.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dapo_lib.errors import BadInput

HANDED_ON = ("DAPO_DATA", "DAPO_CACHE", "OMP_NUM_THREADS")
KNOWN = ("auto", "local")  # addresses that Ray itself resolves
PATIENCE = 5.0  # seconds for a cluster's port to answer


@contextmanager
def backend(
    name: str, address: str | None = None, workers: int | None = None
) -> Iterator[str]:
    """The joblib backend to use inside the block; Ray is started or joined here.

    Without `address`, Ray starts on this machine with `workers` processes. Raises
    ``BadInput`` where Ray is not installed or its address does not answer.
    """
    if name == "loky":
        if address is not None:
            raise BadInput(f"--address: got {address!r}, needs --backend ray")
        yield "loky"
        return
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError:
        raise BadInput(
            "--backend: ray is not installed; install dapo-book[ray]"
        ) from None
    if address is not None:
        reachable(address)
    _join(ray, address, workers)
    register_ray()
    try:
        yield "ray"
    finally:
        ray.shutdown()


def reachable(address: str) -> None:
    """Raise ``BadInput`` in seconds where nothing listens; Ray itself asks for minutes.

    >>> reachable("auto")
    """
    if address in KNOWN:
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host and port.isascii() and port.isdigit() and int(port) < 65_536):
        raise BadInput(
            f"--address: got {address!r}, expected host:port, ray://host:port or auto"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
    except OSError as error:
        raise BadInput(
            f"--address: got {address!r}, no Ray answers there "
            f"({error.strerror or error}); start one with `ray start --head`"
        ) from None


def _join(ray: Any, address: str | None, workers: int | None) -> None:
    passed = {name: os.environ[name] for name in HANDED_ON if name in os.environ}
    options: dict[str, Any] = {"runtime_env": {"env_vars": passed}}
    if address is None or address == "local":
        options |= {"num_cpus": workers, "include_dashboard": False}
        options |= {"log_to_driver": False}
    try:
        ray.init(address=address, logging_level="ERROR", **options)
    except (ConnectionError, ValueError, TimeoutError, RuntimeError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise BadInput(
            f"--address: got {address!r}, cannot join Ray ({first})"
        ) from None
