"""Questions with a reference answer from JSON lines, Parquet or the `datasets` package.

What becomes a prompt is decided here once, for our own loop and for exported runs. A
row whose reference the verifier cannot read is dropped and counted: it is not "wrong".
Left out: tokenizers. One is given where token ids are wanted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dapo_lib.errors import BadInput, DamagedFile
from dapo_lib.verifier import verify

Messages = list[dict[str, str]]
SAVED = ("state.json", "dataset_dict.json")  # what save_to_disk writes beside the rows
VERL = "prompt (a list of messages) and reward_model.ground_truth"


class Question(NamedTuple):
    """A prompt as chat messages, and the reference answer as text."""

    messages: Messages
    answer: str

    @property
    def text(self) -> str:
        """The prompt without a chat template: what the messages say."""
        return "\n\n".join(m["content"] for m in self.messages)


class Questions(NamedTuple):
    """All readable rows of a file, and how many had no readable reference."""

    rows: list[Question]
    dropped: int


def read_questions(
    path: str | Path,
    *,
    format: str = "problems",
    question: str = "question",
    answer: str = "answer",
    prompt: str = "{question}",
    mode: str = "auto",
) -> Questions:
    """The questions of a file or data set; see :class:`dapo_lib...config.Data`.

    `path` is a JSON-lines or Parquet file, a folder of them, a folder that `datasets`
    saved, or a data set's name (``openai/gsm8k:main:train``). Of a folder that has a
    train split (files whose names begin so), that is read alone. Raises ``BadInput``
    naming what is missing and ``DamagedFile`` with the line that is broken.
    """
    build = _from_verl if format == "verl" else _from_problem(question, answer, prompt)
    rows, dropped = [], 0
    for where, number, row in _rows(str(path)):
        try:
            made = build(row)
        except (KeyError, TypeError, IndexError):
            wanted = VERL if format == "verl" else f"{question} and {answer}"
            raise BadInput(_missing(where, number, row, wanted)) from None
        # every row is asked once, with an answer that says nothing
        if verify("", made.answer, mode=mode).gradable:
            rows.append(made)
        else:
            dropped += 1
    if not rows:
        raise BadInput(f"{path}: no row whose reference answer can be read ({dropped})")
    return Questions(rows, dropped)


def reference(text: str) -> str:
    """A reference answer; of a worked solution, what stands after its last ``####``.

    >>> reference("2+2=4\\n#### 1,234"), reference(" 7 ")
    ('1,234', '7')
    """
    return str(text).rpartition("####")[2].strip()


def prompt_ids(question: Question, tokenizer: Any, chat: bool) -> list[int]:
    """Token ids of a prompt: the chat template's, or the text's alone."""
    if not chat:
        return tokenizer(question.text)["input_ids"]
    text = tokenizer.apply_chat_template(
        question.messages, add_generation_prompt=True, tokenize=False
    )
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def _from_problem(
    question: str, answer: str, prompt: str
) -> Callable[[Mapping[str, Any]], Question]:
    def build(row: Mapping[str, Any]) -> Question:
        text = prompt.replace("{question}", str(row[question]))
        return Question([{"role": "user", "content": text}], reference(row[answer]))

    return build


def _from_verl(row: Mapping[str, Any]) -> Question:
    messages = [
        {"role": str(m["role"]), "content": str(m["content"])} for m in row["prompt"]
    ]
    return Question(messages, reference(row["reward_model"]["ground_truth"]))


def _missing(path: str, number: int, row: Any, wanted: str) -> str:
    has = ", ".join(map(str, row)) if isinstance(row, Mapping) else type(row).__name__
    return f"{path}, row {number}: has {has[:200]}; expected {wanted}"


def _rows(path: str) -> Iterator[tuple[str, int, Any]]:
    """Every row with the name of what it stands in and its number there, from 1."""
    place = Path(path)
    if not place.exists() and place.suffix in (".jsonl", ".json", ".parquet"):
        raise BadInput(f"{path}: no such file")  # and no data set's name
    if not place.exists():
        parts = {path: _by_name(path)}
    elif place.is_dir():
        parts = _folder(place)
    else:
        parts = {path: _file(place)}
    for where, found in parts.items():
        for number, row in enumerate(found, start=1):
            yield where, number, row


def _folder(place: Path) -> dict[str, Iterable[Any]]:
    if any((place / mark).is_file() for mark in SAVED):
        return {str(place): _saved(place)}
    files = sorted(p for p in place.iterdir() if p.suffix in (".jsonl", ".parquet"))
    if not files:
        raise BadInput(
            f"{place}: neither a data set that `datasets` saved nor a folder of .jsonl "
            "or .parquet files"
        )
    chosen = [p for p in files if p.name.startswith("train")] or files
    return {str(p): _file(p) for p in chosen}


def _file(place: Path) -> Iterable[Any]:
    return _parquet(place) if place.suffix == ".parquet" else _json_lines(place)


def _json_lines(path: Path) -> Iterable[Any]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            raise DamagedFile(f"{path}, line {number}: not JSON in UTF-8") from None


def _parquet(path: Path) -> list[Any]:
    try:
        import pyarrow.parquet
    except ImportError:
        raise BadInput(
            f"{path}: needs pyarrow; install dapo-book[data], or give JSON lines"
        ) from None
    try:
        return pyarrow.parquet.read_table(path).to_pylist()
    except (OSError, pyarrow.ArrowException) as error:
        first = str(error).splitlines()[0]
        raise DamagedFile(f"{path}: not readable as Parquet ({first})") from None


def _saved(place: Path) -> Iterable[Any]:
    datasets = _datasets(f"{place}: a saved data set")
    try:
        found = datasets.load_from_disk(str(place))
    except Exception as error:  # whatever a broken folder raises
        raise _unreadable(f"{place}: datasets cannot load it", error) from None
    return _split(str(place), found, "train", f"give {place}/SPLIT")


def _by_name(path: str) -> Iterable[Any]:
    """A data set by name: ``NAME``, ``NAME:CONFIG`` or ``NAME:CONFIG:SPLIT``."""
    datasets = _datasets(f"{path}: no such file, and a data set's name")
    name, config, split = [*path.split(":"), "", "", ""][:3]
    try:
        found = datasets.load_dataset(name, config or None)
    except Exception as error:  # whatever the hub answers
        raise _unreadable(f"{path}: no such file, and datasets says", error) from None
    return _split(path, found, split or "train", "give NAME:CONFIG:SPLIT")


def _datasets(what: str) -> Any:
    try:
        import datasets
    except ImportError:
        raise BadInput(
            f"{what} needs the `datasets` package; install dapo-book[data]"
        ) from None
    return datasets


def _split(where: str, found: Any, split: str, remedy: str) -> Iterable[Any]:
    if not isinstance(found, dict):
        return found
    if split not in found:
        has = ", ".join(found)
        raise BadInput(f"{where}: no split {split!r}, only {has}; {remedy}")
    return found[split]


def _unreadable(what: str, error: Exception) -> BadInput:
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return BadInput(f"{what}: {first}")
