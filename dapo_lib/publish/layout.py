"""Where the book's sources and build products lie; every path is derived from the root.

Left out: settings. Titles, pages and theme options are in _config.yml and _toc.yml.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dapo_lib.errors import BadInput

LANGS = ("en", "zh")
LANGUAGE_TAGS = {"en": "en", "zh": "zh-CN"}


@dataclass(frozen=True)
class Layout:
    """The folders of one checkout."""

    root: Path

    @property
    def notebooks(self) -> Path:
        """Sources of the chapters, both languages, no outputs."""
        return self.root / "notebooks"

    @property
    def build(self) -> Path:
        """Everything that is made; may be deleted at any time."""
        return self.root / "_build"

    @property
    def results(self) -> Path:
        """What the notebooks measured (experiments/records.py)."""
        return self.build / "results"

    @property
    def frontend(self) -> Path:
        """MathJax and the Chinese font, taken from npm packages."""
        return self.build / "frontend"

    @property
    def generated(self) -> Path:
        """Page parts written by the metrics step."""
        return self.build / "generated"

    @property
    def site(self) -> Path:
        """The finished site: en/, zh/ and index.html."""
        return self.build / "site"

    @property
    def reference(self) -> Path:
        """The committed metrics that a run is compared with."""
        return self.root / "book" / "reference" / "metrics.json"

    def executed(self, lang: str) -> Path:
        """The executed notebooks of a language."""
        return self.build / "executed" / lang

    def chapters(self) -> list[Path]:
        """The notebooks in reading order."""
        return sorted(self.notebooks.glob("[0-9][0-9]_*.ipynb"))

    def select(self, only: list[str] | None) -> list[Path]:
        """The notebooks whose name starts with one of `only` (all without it).

        Raises ``BadInput`` on a prefix that names no notebook.
        """
        chapters = self.chapters()
        if not only:
            return chapters
        chosen = [p for p in chapters if p.stem.startswith(tuple(only))]
        for prefix in only:
            if not any(p.stem.startswith(prefix) for p in chapters):
                known = ", ".join(p.stem for p in chapters) or "none"
                raise BadInput(f"--only {prefix}: no such notebook; known: {known}")
        return chosen


def find_layout(start: Path | None = None) -> Layout:
    """The checkout that contains `start` (default: the working folder, then this file).

    Raises ``BadInput`` where neither lies in one: the book is not part of the wheel.
    """
    for place in [start or Path.cwd(), Path(__file__)]:
        for folder in [place.resolve(), *place.resolve().parents]:
            if (folder / "_toc.yml").exists() and (folder / "notebooks").is_dir():
                return Layout(folder)
    raise BadInput("book: no _toc.yml here or above; run this inside the project")
