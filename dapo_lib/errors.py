"""Every exception of the project: one line that says what, where and what to do.

Left out: wrapping. A bug keeps its own traceback; only what a user can mend is here.
"""

from __future__ import annotations


class DapoError(Exception):
    """A fault that the user can act on; the command line prints it and exits 1."""

    exit_code = 1


class BadInput(DapoError, ValueError):
    """An argument, option or file that cannot be used; exits 2, nothing written."""

    exit_code = 2


class ImpossibleLogProb(BadInput):
    """A log-probability that is not finite, or above 0: what divergence looks like."""


class DamagedFile(DapoError):
    """A file of ours whose checksum, schema or length is wrong; never half-used."""

    exit_code = 2


class Starved(DapoError):
    """Dynamic sampling ran out of rounds under ``on_exhausted="error"``."""


class Diverged(DapoError):
    """A gradient or weight is not finite; the last checkpoint is still good."""


class Interrupted(DapoError):
    """Ctrl-C or SIGTERM came; says what is safe and how to go on."""

    exit_code = 130


class LostWorker(DapoError):
    """A process of a sweep died; what had finished is in the cache."""


class Drift(DapoError):
    """A recorded metric left its tolerance against the committed reference."""


def expect(
    condition: bool,
    argument: str,
    got: object,
    wanted: str,
    error: type[BadInput] = BadInput,
) -> None:
    """Raise :class:`BadInput` naming the argument, its value or shape, and the remedy.

    >>> expect(True, "eps_low", 0.2, "a number >= 0")
    >>> expect(False, "eps_low", -1, "a number >= 0")
    Traceback (most recent call last):
    dapo_lib.errors.BadInput: eps_low: got -1, expected a number >= 0
    """
    if not condition:
        raise error(f"{argument}: got {got}, expected {wanted}")
