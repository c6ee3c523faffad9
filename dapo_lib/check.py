"""Checkers for the exercises: a reader's answer against the library, with a hint.

A wrong answer is a message, not an exception, so that a page of exercises runs through.
Left out: the solutions. They are folded cells of the notebooks and run with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from dapo_lib.errors import DapoError, expect
from dapo_lib.labels import LANGS, Lang, label


def value(
    got: Any, wanted: Any, *, lang: Lang = "en", tolerance: float = 1e-6, hint: str = ""
) -> bool:
    """Say whether a number, array or tensor is right; True if so.

    Raises ``ValueError`` on an unknown language.

    >>> value(0.1 + 0.2, 0.3)
    ✓ Right.
    True
    >>> value(0.5, 0.25, hint="Square it.")
    ✗ Not yet: got 0.5. Square it.
    False
    """
    expect(lang in LANGS, "lang", repr(lang), "en or zh")
    right = close(got, wanted, tolerance)
    _say(right, "check.got", lang, hint, got=shown(got))
    return right


def same(got: Any, wanted: Any, *, lang: Lang = "en", tolerance: float = 1e-6) -> bool:
    """Say whether two ways to compute something agree; a page's own check.

    Raises ``DapoError`` where they do not: then the page is wrong, not its reader.

    >>> same([0.5, 1.0], torch.tensor([0.5, 1.0]))
    ✓ Both ways agree.
    True
    """
    expect(lang in LANGS, "lang", repr(lang), "en or zh")
    if not close(got, wanted, tolerance):
        raise DapoError(f"check: {shown(got)} is not {shown(wanted)}")
    print(f"✓ {label('check.same', lang)}")
    return True


def function(
    own: Callable[..., Any],
    oracle: Callable[..., Any],
    inputs: Sequence[tuple[Any, ...]],
    *,
    lang: Lang = "en",
    tolerance: float = 1e-6,
    hint: str = "",
) -> bool:
    """Run a reader's function and ours on the same inputs; show the first difference.

    >>> function(lambda x: 2 * x, lambda x: x + x, [(1,), (3,)])
    ✓ Right.
    True
    >>> function(lambda x: x, abs, [(1,), (-2,)])
    ✗ Not yet: for (-2,) it gives -2, and should give 2.
    False
    """
    expect(lang in LANGS, "lang", repr(lang), "en or zh")
    for arguments in inputs:
        wanted = oracle(*arguments)
        try:
            got = own(*arguments)
        except Exception as error:  # a reader's code may raise anything
            got = f"{type(error).__name__}: {error}"
        if not close(got, wanted, tolerance):
            told = {"got": shown(got), "wanted": shown(wanted)}
            _say(False, "check.differs", lang, hint, given=shown(arguments), **told)
            return False
    _say(True, "check.right", lang, "")
    return True


def close(got: Any, wanted: Any, tolerance: float = 1e-6) -> bool:
    """Whether two values agree in shape and within `tolerance`; texts must be equal.

    >>> close([1.0, 2.0], torch.tensor([1.0, 2.0])), close("a", 1.0), close(None, 1.0)
    (True, False, False)
    """
    if isinstance(wanted, str | bool) or isinstance(got, str):
        return type(got) is type(wanted) and got == wanted
    try:
        a, b = _array(got), _array(wanted)
    except (TypeError, ValueError):
        return False
    return a.shape == b.shape and bool(
        np.allclose(a, b, rtol=tolerance, atol=tolerance)
    )


def shown(thing: Any) -> str:
    """A short text of a value."""
    if isinstance(thing, torch.Tensor):
        thing = thing.detach().tolist()
    text = f"{thing:.6g}" if isinstance(thing, float) else str(thing)
    return text if len(text) <= 120 else text[:117] + "..."


def _array(thing: Any) -> np.ndarray:
    if isinstance(thing, torch.Tensor):
        thing = thing.detach().numpy()
    return np.asarray(thing, dtype=float)


def _say(right: bool, key: str, lang: Lang, hint: str, **facts: str) -> None:
    if right:
        print(f"✓ {label('check.right', lang)}")
        return
    gap = " " if hint and lang == "en" else ""
    print(f"✗ {label(key, lang).format(**facts)}{gap}{hint}")
