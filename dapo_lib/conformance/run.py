"""Run the rows against an adapter: right, convention, wrong or not offered, each.

Left out: starting processes (ask.py) and drawing the matrix (matrix.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from dapo_lib.conformance.ask import Adapter, Reply
from dapo_lib.conformance.rows import RAISES, ROWS, Case, Row

BREAKAGES = ("error", "timeout", "died")
VERDICTS = ("right", "convention", "wrong", "not_offered")


@dataclass(frozen=True)
class Answer:
    """What a system said to one case, and what that is."""

    case: Case
    verdict: str
    convention: str
    value: Any
    note: str


@dataclass(frozen=True)
class Result:
    """A row's answers; its verdict is that of its worst case that was offered."""

    row: Row
    answers: tuple[Answer, ...]

    @property
    def verdict(self) -> str:
        """wrong before convention before right; not_offered where nothing is."""
        found = {a.verdict for a in self.answers}
        order = ("wrong", "convention", "right", "not_offered")
        return next(v for v in order if v in found)

    @property
    def conventions(self) -> list[str]:
        """The names of the conventions met, once each."""
        return list(dict.fromkeys(a.convention for a in self.answers if a.convention))


@dataclass(frozen=True)
class Report:
    """All results of one system, and the versions that it reported."""

    system: str
    versions: dict[str, str]
    results: tuple[Result, ...]

    def counts(self) -> dict[str, int]:
        """How many rows have each verdict."""
        found = Counter(r.verdict for r in self.results)
        return {verdict: found[verdict] for verdict in VERDICTS}

    def broken(self) -> list[str]:
        """Rows where the adapter itself failed: an error, a hang, its end."""
        return [
            f"{result.row.id} {answer.value}: {answer.note}"
            for result in self.results
            for answer in result.answers
            if answer.value in BREAKAGES
        ]


def run(
    system: str,
    adapter: Adapter,
    rows: Iterable[Row] = ROWS,
    progress: Callable[[Row], object] = lambda row: None,
) -> Report:
    """Ask every case of every row; an error or a hang marks its row, the rest go on."""
    results = []
    with adapter:
        said = adapter.ask("versions", {})
        versions = said.value if isinstance(said.value, dict) else {}
        for row in rows:
            answers = (judge(c, adapter.ask(c.operation, c.given)) for c in row.cases)
            results.append(Result(row, tuple(answers)))
            progress(row)
    return Report(system, versions, tuple(results))


def judge(case: Case, reply: Reply) -> Answer:
    """The verdict on one reply.

    >>> case = Case("pass_at_k", {"n": 4, "c": 1, "k": 2}, 0.5)
    >>> judge(case, Reply("value", 0.4375)).verdict
    'wrong'
    >>> judge(case, Reply("missing")).verdict
    'not_offered'
    """
    if reply.kind == "missing":
        return Answer(case, "not_offered", "", None, reply.note)
    if reply.kind == "refused":  # which may be the right answer
        verdict, convention = case.verdict(RAISES)
        return Answer(case, verdict, convention, RAISES, reply.note)
    if reply.kind != "value":
        return Answer(case, "wrong", "", reply.kind, reply.note)
    verdict, convention = case.verdict(reply.value)
    if verdict == "wrong" and isinstance(case.right, dict):
        unsaid = sorted(case.right.keys() - dict(reply.value or {}).keys())
        if unsaid:
            note = f"does not say: {', '.join(unsaid)}"
            return Answer(case, "not_offered", "", reply.value, note)
    return Answer(case, verdict, convention, reply.value, "")
