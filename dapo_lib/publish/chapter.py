"""One chapter in one language: its executed copy, its figures, its downloads.

Left out: execution (execute.py) and rendering (Jupyter Book).
"""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

from dapo_lib.errors import BadInput
from dapo_lib.files import write_bytes
from dapo_lib.publish import home, languages, numbers, prose
from dapo_lib.publish.layout import LANGS, Layout
from dapo_lib.publish.outputs import FIGURE

PARAMETER_TAGS = ("parameters", "injected-parameters")
SOLUTION = "solution"


def executed(layout: Layout, name: str, lang: str) -> prose.Notebook:
    """The executed copy as the page needs it: one language, no parameter cells.

    Raises ``BadInput`` where the notebook has not been executed in this language.
    """
    path = layout.executed(lang) / f"{name}.ipynb"
    if not path.exists():
        remedy = f"run `dapo book execute --only {name} --lang {lang}`"
        raise BadInput(f"{name}.ipynb has no executed copy in {lang}; {remedy}")
    notebook = prose.one_language(prose.read(path), lang, drop=PARAMETER_TAGS)
    for cell in notebook["cells"]:
        if SOLUTION in prose.tags(cell):
            _fold(cell, lang)
        cell["source"] = _for_page(cell, name)
    return notebook


def _fold(cell: prose.Cell, lang: str) -> None:
    """A solution is folded away, under a word of its own."""
    words = languages.interface(lang)
    show, hide = words["show_solution"], words["hide_solution"]
    cell["metadata"]["tags"] = [*prose.tags(cell), "hide-cell"]
    cell["metadata"]["mystnb"] = {"code_prompt_show": show, "code_prompt_hide": hide}


def _for_page(cell: prose.Cell, name: str) -> str:
    """Name the chapter inside its own {result} roles."""
    text = prose.source(cell)
    return text if cell["cell_type"] == "code" else numbers.qualify(text, name)


def write_figures(files: dict[str, str], folder: Path) -> None:
    """Write the SVGs of a page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def clean(layout: Layout, path: Path, lang: str) -> prose.Notebook:
    """A notebook in one language without outputs, its `lang` parameter set.

    Numbers that the prose takes from a run come from the committed reference.
    """
    notebook = prose.one_language(prose.read(path), lang)
    for cell in notebook["cells"]:
        text = prose.source(cell)
        if "parameters" in prose.tags(cell):
            text = text.replace('lang = "en"', f'lang = "{lang}"')
        elif cell["cell_type"] == "markdown":
            qualified = numbers.qualify(text, path.stem)
            text = numbers.substitute(layout, qualified, lang)
        cell["source"] = text.splitlines(keepends=True)
    _install_first(layout, notebook, lang)
    return notebook


def _install_first(layout: Layout, notebook: prose.Notebook, lang: str) -> None:
    """Where the repository is known, a first cell that installs what is missing."""
    place = home.home(layout)
    if not place.repository:
        return
    text = home.install_cell(place, lang)
    cell = {
        "cell_type": "code",
        "execution_count": None,
        "id": "install",
        "metadata": {"tags": ["install"]},
        "outputs": [],
        "source": text.splitlines(keepends=True),
    }
    notebook["cells"].insert(0, cell)


def write_downloads(layout: Layout, name: str, lang: str, folder: Path) -> None:
    """`name`.ipynb (executed) and `name`.clean.ipynb in the reader's language."""
    path = layout.executed(lang) / f"{name}.ipynb"
    done = prose.one_language(prose.read(path), lang, drop=("injected-parameters",))
    for cell in done["cells"]:
        text = prose.source(cell)
        if "parameters" in prose.tags(cell):
            cell["source"] = text.replace('lang = "en"', f'lang = "{lang}"')
        elif cell["cell_type"] == "markdown":
            qualified = numbers.qualify(text, name)
            cell["source"] = numbers.substitute(layout, qualified, lang)
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            data.pop(FIGURE, None)  # the PNG beside it stays
            if "image/png" in data:
                data["image/png"] = light_png(data["image/png"])
    done["metadata"].pop("widgets", None)
    _install_first(layout, done, lang)
    _write(folder / f"{name}.ipynb", done)
    source = layout.notebooks / f"{name}.ipynb"
    _write(folder / f"{name}.clean.ipynb", clean(layout, source, lang))


def light_png(encoded: str | list[str]) -> str:
    """A picture in base64 with at most 256 colours, a third of its size."""
    from PIL import Image

    data = base64.b64decode("".join(encoded))
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    out = io.BytesIO()
    few = picture.quantize(
        256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
    )
    few.save(out, "PNG", optimize=True)
    small = out.getvalue()
    return base64.b64encode(small if len(small) < len(data) else data).decode()


def export(layout: Layout, lang: str, out: Path) -> list[Path]:
    """Write clean one-language copies of all notebooks; the paths written."""
    written = []
    for path in layout.chapters():
        written.append(out / path.name)
        _write(written[-1], clean(layout, path, lang))
    return written


def write_branch(layout: Layout, out: Path) -> list[Path]:
    """The branch that Colab and Binder open, in a new folder; the paths written.

    Raises ``BadInput`` where the repository is not known, or the folder exists.
    """
    place = home.home(layout)
    if not place.repository:
        remedy = "set it in _config.yml or as DAPO_REPOSITORY"
        raise BadInput(f"dapo_repository is not set: {remedy}")
    if out.exists():
        raise BadInput(f"--out {out}: exists; choose a new folder")
    written = [p for lang in LANGS for p in export(layout, lang, out / lang)]
    for name, text in home.branch_files(place).items():
        written.append(out / name)
        write_bytes(out / name, text.encode())
    return written


def _write(path: Path, notebook: dict[str, Any]) -> None:
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
    write_bytes(path, text.encode() + b"\n")
