"""The process that holds an adapter: a JSON question a line in, an answer a line out.

It runs under the Python of the system that is asked, so it imports the standard library
alone. Start: ``python child.py SPEC FOLDER``, SPEC a module or file, optionally
``:attribute``. Left out: judgement; the parent compares.
"""

import importlib
import importlib.util
import json
import os
import sys
from pathlib import Path


def load(spec, folder):
    """The adapter named by ``module:attribute`` or ``path/to/file.py:attribute``."""
    name, _, attribute = spec.partition(":")
    here = Path(__file__).resolve().parent  # our file names must not shadow packages
    sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != here]
    if name.endswith(".py"):
        alias = f"adapter_{Path(name).stem}"  # a file trl.py must not be package trl
        found = importlib.util.spec_from_file_location(alias, name)
        module = importlib.util.module_from_spec(found)
        sys.modules[found.name] = module
        found.loader.exec_module(module)
    else:
        sys.path.insert(0, folder)
        module = importlib.import_module(name)
    adapter = getattr(module, attribute) if attribute else module
    return adapter() if isinstance(adapter, type) else adapter


def answer(adapter, operation, given):
    """``{"value": ...}``, or why not: ``missing``, ``refused`` or ``error``.

    ValueError and AssertionError are refusals of the input; any other is an error.
    """
    function = getattr(adapter, operation, None)
    if function is None:
        return {"missing": ""}
    try:
        return {"value": function(**given)}
    except NotImplementedError as error:
        return {"missing": str(error)}
    except Exception as error:
        kind = "refused" if isinstance(error, (ValueError, AssertionError)) else "error"
        return {kind: f"{type(error).__name__}: {error}"[:300]}


def main():
    """Serve until the input ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not be taken for an answer
    try:
        adapter = load(*sys.argv[1:3])
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=out)
        return
    print(json.dumps({"ready": True}), file=out, flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        reply = answer(adapter, question["operation"], question["given"])
        try:
            text = json.dumps(reply)
        except (TypeError, ValueError) as error:
            text = json.dumps({"error": f"not plain data: {error}"})
        print(text, file=out, flush=True)


if __name__ == "__main__":
    main()
