"""Show a running session: one line an iteration, and TensorBoard if asked for.

Left out: commands. This module puts nothing on the app.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from dapo_lib.errors import BadInput, Interrupted

if TYPE_CHECKING:  # torch takes a second to import; only a run needs it
    from dapo_lib.experiments.session import Session

SHOWN = {
    "eval_accuracy": "acc",
    "train_accuracy": "train",
    "length": "len",
    "entropy": "ent",
    "kept": "kept",
}


def follow(session: Session, *, resume: bool, tensorboard: bool, total: int) -> None:
    """Run a session to its end with a progress bar; Ctrl-C leaves it resumable."""
    writer = _writer(session.folder) if tensorboard else None
    done = session.prepare(resume)
    with tqdm(total=total, unit="rollout", mininterval=0.5) as bar:
        try:
            for record in session.steps(done):
                bar.n = int(record["rollout"])
                bar.set_postfix_str(line(record))
                if "note" in record:
                    bar.write(f"rollout {bar.n}: {record['note']}", file=sys.stderr)
                if writer is not None:
                    _write(writer, record)
        except KeyboardInterrupt:
            bar.close()
            raise Interrupted(
                f"interrupted; {session.folder} is safe: add --resume to continue"
            ) from None
    print(f"written: {session.folder}")


def line(record: dict[str, Any]) -> str:
    """The figures of one record in a few words.

    >>> line({"eval_accuracy": 0.5, "kept": 32.0})
    'acc 0.500 kept 32'
    """
    parts = []
    for key, name in SHOWN.items():
        if record.get(key) is not None:
            value = record[key]
            parts.append(
                f"{name} {value:.0f}" if key == "kept" else f"{name} {value:.3f}"
            )
    return " ".join(parts)


def _writer(folder: Any) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise BadInput("--tensorboard: install the tensorboard package") from None
    return SummaryWriter(str(folder / "tensorboard"))


def _write(writer: Any, record: dict[str, Any]) -> None:
    for name, value in record.items():
        if isinstance(value, int | float):
            writer.add_scalar(name, value, int(record["rollout"]))
    writer.flush()
