"""Whole files or none: atomic writes, and JSON that carries its schema and checksum.

Left out: formats. Tables are CSV (experiments/published.py), weights are safetensors
(checkpoint.py); both go through :func:`write_bytes`. Nothing here loads a pickle.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dapo_lib.errors import BadInput, DamagedFile

# what write_bytes calls a file before it is whole: .name.xxxxxxxx
_LEFTOVER = re.compile(r"\..+\.[a-z0-9_]{8}")


def cache_folder(room: str) -> Path:
    """Where `room` keeps what can be made again: under `DAPO_CACHE`, else
    `dapo-book` in the user's cache folder (`XDG_CACHE_HOME`, else ~/.cache).
    """
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("DAPO_CACHE") or Path(home) / "dapo-book") / room


def write_bytes(path: Path | str, data: bytes) -> None:
    """Write a file so that a reader sees the old content or the new, never a part.

    Temporary file in the same folder, fsync, rename. Raises ``BadInput`` naming the
    path where it cannot be written or the disk is full; nothing is left behind.
    """
    path = Path(path)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise _not_written(path, error) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def inside(folder: Path | str, name: str) -> Path:
    """The path of the file `name` directly in `folder`, never anywhere else.

    Raises ``BadInput`` on a name that is empty, hidden or holds a separator.

    >>> inside("results", "a.json").as_posix()
    'results/a.json'
    >>> inside("results", "../a.json")
    Traceback (most recent call last):
    dapo_lib.errors.BadInput: file name: got '../a.json', expected a plain name
    """
    plain = bool(name) and not name.startswith(".") and not set(name) & set("/\\\0")
    if not plain:
        raise BadInput(f"file name: got {name[:80]!r}, expected a plain name")
    return Path(folder) / name


def clear_leftovers(folder: Path | str) -> None:
    """Remove what a killed process left of unfinished writes in its own `folder`.

    Not for a folder in which another process may be writing.
    """
    for path in Path(folder).glob(".*"):
        if _LEFTOVER.fullmatch(path.name):
            path.unlink(missing_ok=True)


def append_bytes(path: Path | str, data: bytes) -> None:
    """Add to the end of a file, or leave it as long as it was.

    For files of lines whose length someone keeps: a process that is killed here may
    leave a part, which is cut off when it goes on. Raises ``BadInput`` as
    :func:`write_bytes` does.
    """
    path = Path(path)
    try:
        with path.open("ab") as file:
            size = file.tell()
            try:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                os.ftruncate(file.fileno(), size)
                raise
    except (OSError, ValueError) as error:
        raise _not_written(path, error) from error


def _not_written(path: Path, error: Exception) -> BadInput:
    reason = getattr(error, "strerror", None) or str(error)
    return BadInput(
        f"cannot write {path}: {reason}; choose a writable folder with free space"
    )


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every file system can
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def sole_writer(out: Path | str, *, folder: bool) -> Iterator[None]:
    """Hold `out`, a folder or a file to be, as the only process that writes it.

    An operating system's lock on `.lock` in the folder (`.NAME.lock` beside a file): it
    dies with the process, so that a killed one is not in the way. What was made for it
    alone is removed at the end. Raises ``BadInput`` at once where another holds it, or
    where nothing can be written.
    """
    from filelock import FileLock, Timeout

    out = Path(out)
    place = out if folder else out.parent
    path = place / (".lock" if folder else f".{out.name}.lock")
    made: list[Path] = []
    try:
        made += [p for p in (place, *place.parents) if not p.exists()]
        place.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
        lock.acquire(timeout=0)
    except Timeout:
        raise BadInput(
            f"--out: another run is writing {out}; wait until it has ended, or choose "
            "another --out"
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        _remove_empty(made)
        raise _not_written(out, error) from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows keeps a file that is open
            path.unlink()
        lock.release()
        _remove_empty(made)


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:  # the deepest first
        with contextlib.suppress(OSError, ValueError):
            folder.rmdir()


def check_writable(path: Path | str) -> None:
    """Raise ``BadInput`` now if `path` could not be written later, before long work."""
    path = Path(path)
    folder = path.parent
    try:
        if path.is_dir():
            raise BadInput(f"cannot write {path}: it is a folder; give a file name")
        while not folder.exists():
            folder = folder.parent
    except (OSError, ValueError) as error:  # a closed folder, a NUL in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"cannot write {path}: {reason}; choose another") from error
    who = {"effective_ids": True} if os.access in os.supports_effective_ids else {}
    if not folder.is_dir() or not os.access(folder, os.W_OK, **who):
        raise BadInput(f"cannot write {path}: {folder} is not a writable folder")


def canonical(payload: Any) -> bytes:
    """The one JSON text of a value: sorted keys, no spaces, finite numbers only.

    >>> canonical({"b": 1, "a": [0.5]})
    b'{"a":[0.5],"b":1}'
    """
    return json.dumps(
        payload,
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    ).encode()


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def write_json(path: Path | str, schema: str, payload: dict[str, Any]) -> None:
    """Write `payload` with its schema name and the SHA-256 of its canonical text."""
    body = {"schema": schema, **payload}
    body["sha256"] = digest(canonical(body))
    text = json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False)
    write_bytes(path, text.encode() + b"\n")


def read_json(path: Path | str, schema: str) -> dict[str, Any]:
    """Read what :func:`write_json` wrote, checked whole.

    Raises ``BadInput`` where there is no such file, ``DamagedFile`` where it is cut,
    altered or of another schema.
    """
    try:
        body = json.loads(Path(path).read_bytes())
    except FileNotFoundError as error:
        raise BadInput(f"{path}: no such file") from error
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedFile(
            f"{path}: not readable as JSON; remove it and run again"
        ) from error
    if not isinstance(body, dict) or body.get("schema") != schema:
        raise DamagedFile(f"{path}: not a {schema} file; remove it and run again")
    said = body.pop("sha256", None)
    if said is None or said != _digest_of(body):
        raise DamagedFile(f"{path}: checksum does not match; remove it and run again")
    return body


def _digest_of(body: dict[str, Any]) -> str | None:
    """Its checksum, or None for what :func:`write_json` cannot have written."""
    try:
        return digest(canonical(body))
    except (ValueError, RecursionError):  # NaN, half a surrogate pair, a deep nest
        return None
