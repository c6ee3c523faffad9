"""The process that executes one notebook: `worker NOTEBOOK OUTPUT PARAMETERS SECONDS`.

Left out: decisions. execute.py plans, this runs papermill and says in its last line
which cell failed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main(notebook: str, output: str, values: str, seconds: str) -> int:
    """Write the executed copy; 1 and a last line that names the cell on failure."""
    import papermill
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    partial = Path(output).with_suffix(".partial.ipynb")
    partial.parent.mkdir(parents=True, exist_ok=True)
    try:
        papermill.execute_notebook(
            notebook,
            str(partial),
            json.loads(values),
            kernel_name="python3",
            execution_timeout=int(seconds),
            progress_bar=False,
            log_output=False,
        )
    except PapermillExecutionError as error:
        print("\n".join(error.traceback), file=sys.stderr)
        return _fail(f"cell {_failed_cell(partial)}: {error.ename}: {error.evalue}")
    except CellTimeoutError:
        return _fail(f"cell {_failed_cell(partial)}: over {seconds} s")
    except DeadKernelError:
        return _fail(f"cell {_failed_cell(partial)}: the kernel died")
    document = json.loads(partial.read_text(encoding="utf-8"))
    text = json.dumps(clean(document), indent=1, ensure_ascii=False, sort_keys=True)
    partial.write_text(text + "\n", encoding="utf-8")
    partial.replace(output)
    return 0


def clean(document: dict[str, Any]) -> dict[str, Any]:
    """Drop what differs between two equal runs: times, paths, a random id."""
    document["metadata"].pop("papermill", None)
    for cell in document["cells"]:
        metadata = cell["metadata"]
        for name in ("papermill", "execution"):
            metadata.pop(name, None)
        if "injected-parameters" in metadata.get("tags", []):
            cell["id"] = "injected-parameters"
    return document


def _failed_cell(partial: Path) -> str:
    """The id of the last cell that was begun."""
    document = json.loads(partial.read_text(encoding="utf-8"))
    status = [
        (cell["metadata"].get("papermill", {}).get("status"), cell.get("id"))
        for cell in document["cells"]
        if cell["cell_type"] == "code"
    ]
    begun = [name for state, name in status if state not in (None, "pending")]
    return repr(begun[-1] if begun else status[0][1])


def _fail(line: str) -> int:
    print(" ".join(line.split()), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
