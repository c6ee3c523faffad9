"""What the hostile tests share: ways to damage a file, and a command line to call."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from dapo_lib.cli import main


def damages(data: bytes) -> Iterator[bytes]:
    """A file cut at ten places, then with one of fifty bits flipped."""
    rng = random.Random(len(data))
    for part in range(10):
        yield data[: len(data) * part // 10]
    for _ in range(50):
        flipped = bytearray(data)
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        yield bytes(flipped)


@pytest.fixture
def damaged() -> Callable[[bytes], Iterator[bytes]]:
    """See :func:`damages`."""
    return damages


@pytest.fixture
def dapo(capsys):
    """Run a command line: (exit code, standard output, standard error)."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = main([str(a) for a in arguments])
        return code, *capsys.readouterr()

    return call
