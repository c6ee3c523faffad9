"""The `dapo` command: one file a subcommand, each a thin face over the library.

Left out: work. A subcommand parses, calls and prints; heavy imports live inside the
functions, so that `dapo --help` is quick.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import signal
import sys
import warnings

import typer

from dapo_lib.errors import DapoError

# typer carries its own click since 0.26; its exception classes are reached through it
UsageError = typer.BadParameter.__mro__[1]
ClickException = UsageError.__mro__[1]

INTERRUPTED = (
    "interrupted; what was finished is kept: run it again (with --resume where there "
    "is that option)"
)
app = typer.Typer(
    name="dapo",
    help="DAPO (arXiv 2503.14476) on a laptop CPU: train, sweep, verify, publish.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _root() -> None:
    """Every command takes --help. Bad input: one line on standard error, exit 2."""


def _register() -> None:
    """Import every module of this folder; each puts its commands on `app`."""
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        if module != "__main__":
            importlib.import_module(f"{__name__}.{module}")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code. One line for every error."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    _register()
    try:
        code = app(args=arguments, standalone_mode=False, prog_name="dapo")
        if code == 130:  # what typer makes of Ctrl-C, without a word
            return _complain(INTERRUPTED, 130)
        return code if isinstance(code, int) else 0
    except ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            return 2
        given = sys.argv[1:] if arguments is None else arguments
        return _complain(_one_line(error, given), 2)
    except (typer.Abort, KeyboardInterrupt):
        return _complain(INTERRUPTED, 130)
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except DapoError as error:
        return _complain(str(error), error.exit_code)


def _one_line(error: ClickException, arguments: list[str]) -> str:
    message = " ".join(error.format_message().split())
    option = re.search(r"'(--[a-z-]+)'", message)
    if option:  # typer names the option but not always its value
        joined = [a.removeprefix(option[1] + "=") for a in arguments]
        values = [a for a, b in zip(joined, arguments, strict=True) if a != b]
        if option[1] in arguments[:-1]:
            values.append(arguments[arguments.index(option[1]) + 1])
        if values and repr(values[-1]) not in message:
            message += f" (got {values[-1]!r})"
    command = error.ctx.command_path if getattr(error, "ctx", None) else "dapo"
    return f"{message} (see `{command} --help`)"


def _terminate(*_: object) -> None:
    """SIGTERM ends a command as Ctrl-C does: files are cleared, the line is printed."""
    raise KeyboardInterrupt


def _warn(message: object, *_: object, **__: object) -> None:
    """A warning is one line too, without the path of a source file."""
    print(f"dapo: warning: {' '.join(str(message).split())}", file=sys.stderr)


def _complain(message: str, code: int) -> int:
    print(f"dapo: error: {' '.join(message.split())}", file=sys.stderr)
    return code


def entry() -> None:
    """The console script: what a process may set for itself, then :func:`main`."""
    warnings.showwarning = _warn
    signal.signal(signal.SIGTERM, _terminate)
    sys.exit(main())
