"""Four real solutions to each of 1,319 GSM8K test problems, and rules that pick one.

The file is example_model_solutions.jsonl of GSM8K (MIT, OpenAI 2021); texts, labels and
lengths are real. Left out: which model wrote a text, but for the rules that say so.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dapo_lib.candidate.suites import solution_features
from dapo_lib.errors import BadInput, expect
from dapo_lib.metrics import maj_at_k

FILE = Path("gsm8k") / "example_model_solutions.jsonl"
MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
TRAIN, VALIDATION = 700, 179  # problems; the rest is held out
RIDGE = 0.1  # of the ceiling, chosen on the validation problems


@dataclass(frozen=True)
class Solutions:
    """The data as tensors; problems in a fixed shuffled order.

    Shape: features [N, 4, F] standardised on the training problems; correct, length
    [N, 4]; answers [N, 4] the stated final numbers (NaN where none).
    """

    features: Tensor
    correct: Tensor
    length: Tensor
    answers: Tensor


def data_file(data: Path | str | None = None) -> Path:
    """The JSONL file in a data folder; the folder's default is DAPO_DATA.

    Raises ``BadInput`` where there is no folder or no such file.
    """
    folder = data or os.environ.get("DAPO_DATA")
    expect(bool(folder), "data", folder, "a data folder, or DAPO_DATA set to one")
    places = [p for p in (Path(folder) / FILE, Path(folder) / FILE.name) if p.exists()]
    if not places:
        raise BadInput(f"data: {FILE.name} is not in {folder}; point DAPO_DATA at it")
    return places[0]


@cache
def load(path: Path) -> Solutions:
    """Read the solutions and their features. Raises ``BadInput`` naming a bad line."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
            answers = [row[m] for m in MODELS]
            rows.append(
                [(row["question"], a["solution"], a["is_correct"]) for a in answers]
            )
        except (ValueError, KeyError, TypeError) as error:
            wanted = "question and four models with solution and is_correct"
            raise BadInput(f"{path.name} line {number}: expected {wanted}") from error
    enough = len(rows) > TRAIN + VALIDATION
    expect(enough, path.name, f"{len(rows)} rows", f"more than {TRAIN + VALIDATION}")
    # a fixed order: the split is the same in every run and arm
    rows = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]
    values = [
        [list(solution_features.features(q, s).values()) for q, s, _ in row]
        for row in rows
    ]
    raw = torch.tensor(values, dtype=torch.float64)
    known = raw[:TRAIN].flatten(0, 1)
    stated = [[solution_features.read(q, s).answer for q, s, _ in r] for r in rows]
    return Solutions(
        (raw - known.mean(0)) / known.std(0).clamp(min=1e-6),
        torch.tensor([[int(c) for *_, c in row] for row in rows]),
        torch.tensor(
            [[solution_features.count_tokens(s) for _, s, _ in row] for row in rows]
        ),
        torch.tensor([[np.nan if a is None else a for a in row] for row in stated]),
    )


def baselines(solutions: Solutions, where: slice) -> dict[str, float]:
    """Accuracy of what needs no reinforcement: random, majority, each model, oracle.

    ``linear_ceiling`` is what the policy's own features and shape reach from labels.
    """
    correct = solutions.correct[where].double()
    answers = solutions.answers[where].tolist()
    votes = [
        maj_at_k([None if a != a else a for a in row], right)
        for row, right in zip(answers, correct.bool().tolist(), strict=True)
    ]
    by_model = correct.mean(0).tolist()
    return {
        "random": float(correct.mean()),
        "majority": sum(votes) / len(votes),
        **{f"model_{m}": v for m, v in zip(MODELS, by_model, strict=True)},
        "oracle": float(correct.max(1).values.mean()),
        "linear_ceiling": linear_ceiling(solutions, where),
    }


def linear_ceiling(solutions: Solutions, where: slice) -> float:
    """Greedy accuracy of the linear policy fitted to the labels by L-BFGS.

    It maximises the expected accuracy on the training problems less a ridge, exactly
    and without sampling. Deterministic; starts from zero.
    """
    features, correct = solutions.features[:TRAIN], solutions.correct[:TRAIN].double()
    weights = torch.zeros(features.shape[-1], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=60, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        right = ((features @ weights).softmax(-1) * correct).sum(-1).mean()
        value = RIDGE * weights.square().sum() - right
        value.backward()
        return value

    optimiser.step(loss)
    best = (solutions.features[where] @ weights.detach()).argmax(-1, keepdim=True)
    return float(solutions.correct[where].double().gather(-1, best).mean())
