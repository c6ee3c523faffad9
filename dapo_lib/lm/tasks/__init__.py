"""Token tasks with a rule reward: the digit-sum chain and the two allowed letters."""

from dapo_lib.errors import expect
from dapo_lib.lm.tasks.allowed_letter import AllowedLetter, LookupLetter
from dapo_lib.lm.tasks.digit_sum import DigitSum
from dapo_lib.lm.tasks.task import CoinFlip, Demonstrations, TokenTask
from dapo_lib.lm.tasks.vocabulary import Vocabulary

_ALL: tuple[type[TokenTask], ...] = (DigitSum, AllowedLetter, LookupLetter)
TASKS: dict[str, type[TokenTask]] = {t.name: t for t in _ALL}


def task_named(name: str) -> type[TokenTask]:
    """The task class of a name. Raises ``ValueError`` on an unknown one.

    >>> task_named("digit_sum").prompt_length
    20
    """
    expect(name in TASKS, "task", repr(name), " or ".join(TASKS))
    return TASKS[name]


__all__ = [
    "TASKS",
    "AllowedLetter",
    "CoinFlip",
    "Demonstrations",
    "DigitSum",
    "LookupLetter",
    "TokenTask",
    "Vocabulary",
    "task_named",
]
