"""GSM8K problems from a folder, from the Hugging Face hub, or the embedded default.

Left out: downloading by hand and any cache of ours; `datasets` keeps its own.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

from dapo_lib.data.arithmetic import evaluate, parse_annotations
from dapo_lib.errors import BadInput, expect

Split = Literal["train", "test"]
SPLITS: tuple[Split, ...] = ("train", "test")
HUB_NAME = "openai/gsm8k"
# the published files; a copy that was cut or altered is told from them by these sums
PUBLISHED: dict[str, str] = {
    "train": "17f347dc51477c50d4efb83959dbb7c56297aba886e5544ee2aaed3024813465",
    "test": "3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14",
}
WANTED = '{"question": text, "answer": text that ends in "#### NUMBER"}'


@dataclass(frozen=True)
class Problem:
    """One word problem and its reference solution.

    `answer` is exact; `answer_text` is as written after ``####``, separators included.
    `annotations` are the (lhs, rhs) texts of ``<<lhs=rhs>>``, in order.
    """

    question: str
    solution: str
    answer: Fraction
    answer_text: str
    annotations: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Source:
    """Which data a run used. The folder's path is left out: it says nothing elsewhere.

    `sha256` and `rows` are per split; `name` is gsm8k, openai/gsm8k or embedded.
    """

    name: str
    sha256: dict[Split, str]
    rows: dict[Split, int]

    def describe(self) -> str:
        """One line for the terminal; it says which file is not GSM8K as published.

        >>> Source("gsm8k", {"train": "ab" * 32}, {"train": 2}).describe()
        'gsm8k: train 2 problems (sha256 abababababab, not the published file)'
        """
        odd = self.altered()
        parts = (
            f"{split} {self.rows[split]} problems (sha256 {digest[:12]}"
            f"{', not the published file' if split in odd else ''})"
            for split, digest in self.sha256.items()
        )
        return f"{self.name}: {', '.join(parts)}"

    def altered(self) -> list[Split]:
        """The splits called GSM8K whose bytes are not those that were published."""
        if self.name not in ("gsm8k", HUB_NAME):
            return []
        return [s for s, digest in self.sha256.items() if digest != PUBLISHED[s]]

    def as_dict(self) -> dict:
        """For the JSON output and a result's provenance."""
        return {"name": self.name, "sha256": self.sha256, "rows": self.rows}


@dataclass(frozen=True)
class Data:
    """Both splits and where they came from."""

    train: list[Problem]
    test: list[Problem]
    source: Source


def problem(question: object, solution: object) -> Problem:
    """A problem from the two texts of a GSM8K row.

    Raises ``BadInput`` on a value that is not text, a solution without exactly one
    ``####``, and an answer that is not a number.

    >>> problem("2 pens at $3 each?", "2*3 = <<2*3=6>>6\\n#### 6").answer
    Fraction(6, 1)
    """
    texts = isinstance(question, str) and isinstance(solution, str)
    expect(texts, "row", "a value that is not text", WANTED)
    expect(bool(question.strip()), "question", "an empty text", WANTED)
    body, mark, tail = solution.rpartition("####")
    expect(bool(mark) and "####" not in body, "answer", _tail(solution), WANTED)
    text = tail.strip()
    try:
        answer = evaluate(text.replace(",", ""))
    except BadInput:
        raise BadInput(f"answer: got '#### {text[:40]}', expected {WANTED}") from None
    return Problem(
        question.strip(), solution, answer, text, tuple(parse_annotations(solution))
    )


def load_gsm8k(
    folder: Path | str, split: Split, limit: int | None = None
) -> list[Problem]:
    """The first `limit` problems of ``folder/{split}.jsonl``, in file order.

    Raises ``BadInput`` that names the file, the line and what was expected there.

    >>> load_gsm8k("/no/such/folder", "train")
    Traceback (most recent call last):
    dapo_lib.errors.BadInput: /no/such/folder/train.jsonl: no such file, expected JSONL
    """
    expect(split in SPLITS, "split", repr(split), "train or test")
    expect(limit is None or limit >= 1, "limit", limit, "at least 1 problem")
    path = Path(folder) / f"{split}.jsonl"
    return _parse(_read(path), path, limit)


def sha256_of(path: Path | str) -> str:
    """Hex digest of a file's bytes."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def resolve_data(path: Path | str | None = None, offline: bool = False) -> Data:
    """The data to train on: `path`, else DAPO_DATA, else the hub or the embedded set.

    A folder may be the data root (holding ``gsm8k/``) or the gsm8k folder itself. With
    neither, ``offline=True`` takes the embedded problems, else the `datasets` extra
    fetches openai/gsm8k. Raises ``BadInput`` where what was asked for is not there: no
    silent fall-back to other data.
    """
    if path is not None:
        return _from_folder(Path(path), "data")
    if os.environ.get("DAPO_DATA"):
        return _from_folder(Path(os.environ["DAPO_DATA"]), "DAPO_DATA")
    if offline:
        from dapo_lib.data.embedded import load_embedded

        return load_embedded()
    return _from_hub()


def _from_folder(root: Path, argument: str) -> Data:
    for folder in (root, root / "gsm8k"):
        if (folder / "train.jsonl").exists() or (folder / "test.jsonl").exists():
            break
    else:
        wanted = "a folder with train.jsonl and test.jsonl, or with gsm8k/"
        raise BadInput(f"{argument}: got {str(root)!r}, expected {wanted}")
    splits = {split: load_gsm8k(folder, split) for split in SPLITS}
    digests = {split: sha256_of(folder / f"{split}.jsonl") for split in SPLITS}
    return bundle("gsm8k", splits, digests)


def _from_hub() -> Data:
    remedy = "give a folder (--data, DAPO_DATA) or --offline for the embedded problems"
    try:
        import datasets
    except ImportError:
        raise BadInput(
            "data: the `datasets` library is not installed; "
            f"install dapo-book[data], {remedy}"
        ) from None
    try:
        loaded = datasets.load_dataset(HUB_NAME, "main")
        rows = {split: list(loaded[split]) for split in SPLITS}
    except Exception as error:  # its HTTP clients share no base class
        raise BadInput(
            f"data: cannot fetch {HUB_NAME} ({type(error).__name__}); {remedy}"
        ) from error
    return from_rows(HUB_NAME, rows)


def from_rows(name: str, rows: dict[Split, list[dict[str, str]]]) -> Data:
    """Data from rows in memory; the digest is that of their JSON lines."""
    lines = {
        split: [
            json.dumps({"question": row["question"], "answer": row["answer"]})
            for row in rows[split]
        ]
        for split in SPLITS
    }
    splits = {
        split: _parse(lines[split], Path(f"{name}/{split}"), None) for split in SPLITS
    }
    digests = {
        split: hashlib.sha256(("\n".join(lines[split]) + "\n").encode()).hexdigest()
        for split in SPLITS
    }
    return bundle(name, splits, digests)


def bundle(name: str, splits: dict, digests: dict) -> Data:
    """Both splits under one :class:`Source`."""
    rows = {split: len(splits[split]) for split in SPLITS}
    return Data(splits["train"], splits["test"], Source(name, digests, rows))


def _read(path: Path) -> list[str]:
    if not path.is_file():
        raise BadInput(f"{path}: no such file, expected JSONL")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise BadInput(f"{path}, line {line}: not UTF-8, expected JSONL") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from None
    if not text.strip():
        raise BadInput(f"{path}: empty file, expected one problem a line: {WANTED}")
    # not splitlines(): U+2028 and the like may stand inside a JSON string
    return text.removesuffix("\n").split("\n")


def _parse(lines: Iterable[str], path: Path, limit: int | None) -> list[Problem]:
    problems = []
    for number, line in enumerate(lines, start=1):
        if limit is not None and len(problems) == limit:
            break
        try:
            problems.append(_parse_line(line))
        except BadInput as error:
            raise BadInput(f"{path}, line {number}: {error}") from None
    return problems


def _parse_line(line: str) -> Problem:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise BadInput(f"not JSON, expected {WANTED}") from None
    expect(isinstance(row, dict), "row", f"a {type(row).__name__}", WANTED)
    missing = [key for key in ("question", "answer") if key not in row]
    expect(not missing, "row", f"no {' and no '.join(missing)}", WANTED)
    return problem(row["question"], row["answer"])


def _tail(text: str) -> str:
    return repr("..." + text[-20:] if len(text) > 20 else text)
