"""A run handed over: a folder that TRL or verl can start from, and what differs there.

Everything is rendered and checked before the first file is written.
Left out: starting anything. The folder's NOTES.md says how.
"""

from __future__ import annotations

import importlib.metadata
import io
from pathlib import Path
from typing import Any

from dapo_lib.data.questions import Questions
from dapo_lib.engines import render, table
from dapo_lib.engines.validate import validate
from dapo_lib.errors import BadInput
from dapo_lib.experiments.config import Data, Run
from dapo_lib.files import write_bytes
from dapo_lib.labels import label

SOURCE = "dapo_book"  # data_source of the rows that we write


def export(
    run: Run,
    engine: table.Engine,
    out: Path,
    *,
    force: bool = False,
    allow_loss: bool = False,
) -> tuple[list[Path], str]:
    """Write the folder; its files, and check_config's verdict on it.

    Raises ``BadInput`` where the engine loses a mechanism (unless `allow_loss`), where
    the folder exists (unless `force`), and on options that would do nothing.
    """
    lost = [x for x in table.limits(run, engine) if x.level == "lost"]
    if lost and not allow_loss:
        words = "; ".join(f"{x.id}: {describe(x)}" for x in lost)
        raise BadInput(
            f"{engine} cannot express this run ({words}); change it, or export "
            "without by --allow-loss"
        )
    _check_folder(out, force)
    report = validate(run, engine)
    files = contents(run, engine, report.verdict)
    for name, data in files.items():
        write_bytes(out / name, data)
        if name.endswith(".sh"):
            (out / name).chmod(0o755)
    return [out / name for name in files], report.verdict


def describe(limit: table.Limit, lang: str = "en") -> str:
    """A limit in words."""
    return label(f"engines.limit_{limit.id}", lang)


def contents(run: Run, engine: table.Engine, verdict: str) -> dict[str, bytes]:
    """The files of an export by name."""
    texts = {"run.yaml": render.render_ours(run)}
    data: dict[str, bytes] = {}
    if engine == "trl":
        texts["train.py"] = render.render_trl(run)
        texts["fsdp.yaml"] = render.render_fsdp(run)
    else:
        texts["launch.sh"] = render.render_verl(run)
        texts["reward.py"] = render.render_reward(run)
        data = _parquet_files(run.data)
    texts["NOTES.md"] = notes(run, engine, verdict)
    return {name: text.encode() for name, text in texts.items()} | data


def notes(run: Run, engine: table.Engine, verdict: str) -> str:
    """What the reader of an export must know: start, versions, differences."""
    tested = table.table()["tested"][engine]
    starts = {
        "trl": f"torchrun --nnodes {run.hardware.nodes} --nproc_per_node "
        f"{run.hardware.gpus_per_node} train.py",
        "verl": "bash launch.sh",
    }
    later = {  # verl's resume_mode is auto
        "trl": "`train.py --resume`, from the newest whole checkpoint",
        "verl": "the same command, from the newest checkpoint",
    }
    lines = [
        f"# {run.name} on {engine}",
        "",
        f"Start: `{starts[engine]}`",
        f"Stopped? {later[engine]}.",
        f"Tested with {engine} {tested}. `dapo check-config` says of it: {verdict}.",
        f"Options by {engine}'s own names: `run.yaml`, `extra.{engine}`.",
    ]
    for level, title in (("lost", "Lost"), ("differs", "Done otherwise")):
        found = [x for x in table.limits(run, engine) if x.level == level]
        if found:
            lines += ["", f"## {title}", ""]
            lines += [f"* {x.id}: {describe(x)}" for x in found]
    return "\n".join(lines) + "\n"


def version_warning(engine: table.Engine, version: str | None = None) -> str | None:
    """A line where the engine's version (given, or installed here) is not tested."""
    tested = table.table()["tested"][engine]
    if version is None:
        try:
            version = importlib.metadata.version(engine)
        except importlib.metadata.PackageNotFoundError:
            return None
    if version == tested:
        return None
    return (
        f"{engine} {version}: not tested, the export is written for {engine} {tested}"
    )


def _check_folder(out: Path, force: bool) -> None:
    if out.is_file():
        raise BadInput(f"--out {out}: is a file; give a folder")
    if out.is_dir() and any(out.iterdir()) and not force:
        raise BadInput(f"--out {out}: exists; add --force to overwrite its files")


def _parquet_files(data: Data) -> dict[str, bytes]:
    if data.format == "verl":
        return {}
    named = {"train": data.train, "validation": data.validation}
    return {
        f"{split}.parquet": verl_parquet(data.read(path), split)
        for split, path in named.items()
        if path is not None
    }


def verl_rows(questions: Questions, split: str) -> list[dict[str, Any]]:
    """Rows in verl's schema: one a question.

    >>> from dapo_lib.data.questions import Question
    >>> one = Question([{"role": "user", "content": "1+1?"}], "2")
    >>> verl_rows(Questions([one], 0), "train")[0]["reward_model"]
    {'style': 'rule', 'ground_truth': '2'}
    """
    return [
        {
            "data_source": SOURCE,
            "prompt": q.messages,
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": q.answer},
            "extra_info": {"split": split, "index": i},
        }
        for i, q in enumerate(questions.rows)
    ]


def verl_parquet(questions: Questions, split: str) -> bytes:
    """The rows as a Parquet file. Raises ``BadInput`` where pyarrow is missing."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise BadInput("verl's data is Parquet: install dapo-book[data]") from None
    buffer = io.BytesIO()
    made = pyarrow.Table.from_pylist(verl_rows(questions, split))
    pyarrow.parquet.write_table(made, buffer)
    return buffer.getvalue()
