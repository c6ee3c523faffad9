"""Where a sweep's workers live: processes of this machine, or a Ray cluster.

Left out: a scheduler of our own. joblib talks to both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dapo_lib.errors import BadInput


@contextmanager
def backend(name: str, address: str | None = None) -> Iterator[str]:
    """The joblib backend to use inside the block; Ray is started or joined here.

    Raises ``BadInput`` where Ray is not installed or its address does not answer.
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
    try:
        ray.init(address=address, include_dashboard=False, log_to_driver=False)
    except (ConnectionError, ValueError, TimeoutError, RuntimeError) as error:
        first = str(error).splitlines()[0]
        raise BadInput(
            f"--address: got {address!r}, cannot join Ray ({first})"
        ) from None
    register_ray()
    try:
        yield "ray"
    finally:
        ray.shutdown()
