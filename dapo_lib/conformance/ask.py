"""Ask an adapter in a process of its own, with a time limit a question.

Left out: rows. This file knows operations, arguments and answers.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dapo_lib.errors import BadInput

CHILD = Path(__file__).with_name("child.py")


@dataclass(frozen=True)
class Reply:
    """What came back: a value, a reason why not, or silence (`timeout`)."""

    kind: str  # value | missing | refused | error | timeout | died
    value: Any = None
    note: str = ""


class Adapter:
    """A context manager around the child process; a hung child is replaced."""

    def __init__(
        self,
        spec: str,
        python: str | None = None,
        *,
        timeout: float = 20.0,
        start_timeout: float = 300.0,
        quiet: bool = True,
    ) -> None:
        self.spec, self.python = spec, python or sys.executable
        self.timeout, self.start_timeout, self.quiet = timeout, start_timeout, quiet
        self._process: subprocess.Popen[bytes] | None = None
        self._pending = b""

    def __enter__(self) -> Adapter:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def ask(self, operation: str, given: dict[str, Any]) -> Reply:
        """One question. Never raises for what the adapter does."""
        if self._process is None:
            self._start()
        line = json.dumps({"operation": operation, "given": given}).encode() + b"\n"
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except OSError:
            return self._lost("died")
        text = self._read(self.timeout)
        if not text:
            return self._lost("timeout" if text is None else "died")
        reply = json.loads(text)
        if "value" in reply:
            return Reply("value", reply["value"])
        (kind,) = reply
        return Reply(kind, note=reply[kind])

    def _start(self) -> None:
        self._errors = tempfile.TemporaryFile()
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        try:
            self._process = subprocess.Popen(
                [self.python, str(CHILD), self.spec, os.getcwd()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors if self.quiet else None,
                env=environment,
            )
        except OSError as error:
            self._errors.close()
            raise BadInput(f"--python {self.python}: {error.strerror}") from error
        self._pending = b""
        text = self._read(self.start_timeout)
        reply = json.loads(text) if text else {"error": "it ended without a word"}
        if "error" in reply:
            self._stop()
            raise BadInput(
                f"adapter {self.spec}: {reply['error']}; expected module[:name] or "
                "file.py[:name] that can be imported"
            )

    def _read(self, limit: float) -> str | None:
        """One line of the child, "" at its end, or None after `limit` seconds."""
        pipe = self._process.stdout.fileno()
        end = time.monotonic() + limit
        while b"\n" not in self._pending:
            left = end - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                return None
            part = os.read(pipe, 65536)
            if not part:
                return ""
            self._pending += part
        line, self._pending = self._pending.split(b"\n", 1)
        return line.decode()

    def _lost(self, kind: str) -> Reply:
        self._stop()
        note = {"timeout": f"no answer in {self.timeout:g} s", "died": "it ended"}[kind]
        return Reply(kind, note=note)

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # a question may still be in it
                pipe.close()
        self._errors.close()
