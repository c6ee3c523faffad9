"""A data set as a table of problems with six candidates each, features and lengths.

Candidates and their order hang on a hash of the question, never on a run's seed. Left
out, and counted with a reason: problems without an exact derivation, or without five
distractors whose answers differ from gold and from each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from random import Random

import torch
from torch import Tensor

from dapo_lib.candidate import question as questions
from dapo_lib.candidate.derivations import Derivation, LeftOut, derive, text, tokens
from dapo_lib.candidate.edits import EDITS
from dapo_lib.candidate.features import FEATURES, features
from dapo_lib.data.gsm8k import Problem
from dapo_lib.errors import BadInput, expect

SLOTS = 6
GOLD = "gold"
MIXES: dict[str, tuple[str, ...]] = {
    "verify": ("slip", "slip", "ungrounded", "ungrounded", "extra"),
    "hard": ("slip", "early", "op", "misread", "extra"),
}
# in place of an edit that a problem does not allow, e.g. `early` of a single step
FALLBACK = ("op", "misread", "swap", "scale", "ungrounded", "slip", "extra", "early")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of six: its derivation and which edit made it (``gold``: none)."""

    kind: str
    steps: Derivation


@dataclass(frozen=True)
class Scaling:
    """Mean and standard deviation of every feature over the training candidates."""

    mean: Tensor
    deviation: Tensor

    @classmethod
    def of(cls, features: Tensor) -> Scaling:
        """Measured over all candidates; a constant feature keeps its scale."""
        flat = features.flatten(0, 1)
        deviation = flat.std(0, correction=0)
        return cls(flat.mean(0), torch.where(deviation > 1e-9, deviation, 1.0))

    def __call__(self, features: Tensor) -> Tensor:
        return (features - self.mean) / self.deviation


@dataclass(frozen=True)
class Table:
    """N problems with six candidates each.

    Shape:
        features: [N, 6, F] float64, raw or standardised.
        length: [N, 6] tokens; correct: [N, 6] 0/1; gold: [N] the right slot.
    `texts` and `kinds` hold six strings a problem, `questions` one; `left_out` counts
    problems by reason, `replaced` counts edits that a problem did not allow.
    """

    mix: str
    features: Tensor
    length: Tensor
    gold: Tensor
    texts: list[tuple[str, ...]] = field(repr=False)
    kinds: list[tuple[str, ...]] = field(repr=False)
    questions: list[str] = field(repr=False)
    left_out: dict[str, int] = field(default_factory=dict)
    replaced: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.gold)

    @property
    def correct(self) -> Tensor:
        """[N, 6] 1 on the gold slot."""
        return torch.nn.functional.one_hot(self.gold, SLOTS)

    def scaled(self, scaling: Scaling) -> Table:
        """The same table with standardised features."""
        return replace(self, features=scaling(self.features))

    def rows(self, which: Sequence[int]) -> Table:
        """The same table with the problems `which` only."""
        at = torch.as_tensor(which, dtype=torch.long)
        columns = [
            [rows[i] for i in at.tolist()]
            for rows in (self.texts, self.kinds, self.questions)
        ]
        tensors = (self.features[at], self.length[at], self.gold[at])
        return Table(self.mix, *tensors, *columns, self.left_out, self.replaced)


def candidates(question: str, gold: Derivation, mix: str) -> tuple[Candidate, ...]:
    """Gold and five edits of it in an order that hangs on the question alone.

    Raises :class:`LeftOut` where five edits with six different answers do not exist,
    and ``BadInput`` on an unknown mix.
    """
    if mix not in MIXES:
        raise BadInput(f"mix: got {mix!r}, expected {' or '.join(MIXES)}")
    order = Random(int.from_bytes(sha256(f"{mix}\n{question}".encode()).digest()[:8]))
    seen = questions.read(question)
    found = [Candidate(GOLD, gold)]
    for kind in MIXES[mix]:
        found.append(_edited(gold, seen, kind, order, found))
    return tuple(order.sample(found, SLOTS))


def _edited(gold, seen, kind: str, order: Random, found: list[Candidate]) -> Candidate:
    answers = {c.steps[-1].result for c in found}
    for name in (kind, *FALLBACK):
        for steps in EDITS[name](gold, seen, order):
            if steps[-1].result not in answers:
                return Candidate(name, steps)
    raise LeftOut("no five distractors with different answers")


def build(problems: Iterable[Problem], mix: str = "verify") -> Table:
    """The table of a data set, features raw.

    Raises ``BadInput`` on an unknown mix and where no problem can be used.
    """
    left_out: Counter[str] = Counter()
    replaced: Counter[str] = Counter()
    rows, lines, kinds, asked = [], [], [], []
    for problem in problems:
        try:
            six = candidates(problem.question, derive(problem), mix)
        except LeftOut as fault:
            left_out[str(fault)] += 1
            continue
        seen = questions.read(problem.question)
        rows.append([features(seen, c.steps) for c in six])
        lines.append(tuple(text(c.steps) for c in six))
        kinds.append(tuple(c.kind for c in six))
        asked.append(problem.question)
        replaced.update((Counter(MIXES[mix]) - Counter(kinds[-1])).elements())
    total = sum(left_out.values())
    expect(bool(rows), "problems", f"{total}, none usable", "annotated problems")
    return Table(
        mix,
        torch.tensor(rows, dtype=torch.float64).reshape(-1, SLOTS, len(FEATURES)),
        torch.tensor([[len(tokens(line)) for line in six] for six in lines]),
        torch.tensor([row.index(GOLD) for row in kinds]),
        lines,
        kinds,
        asked,
        dict(left_out.most_common()),
        dict(replaced.most_common()),
    )
