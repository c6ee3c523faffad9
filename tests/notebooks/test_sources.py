"""The rules that every chapter's source keeps; each fault names file, cell and remedy.

Left out: what needs an execution (tests/site) and the English-Chinese comparison of
pages, which is here once for all (`twins.faults`).
"""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path
from statistics import median, quantiles

import pytest

from dapo_lib.publish import glossary, prose, text, twins
from dapo_lib.publish.layout import Layout

LAYOUT = Layout(Path(__file__).resolve().parents[2])
CHAPTERS = LAYOUT.chapters()
CONTRACT = [
    "intuition",
    "equation",
    "code",
    "check",
    "ablation",
    "explore",
    "breaks",
    "exercises",
    "map",
]
pytestmark = pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)


def cells(path, kind=None):
    return [c for c in prose.read(path)["cells"] if kind in (None, c["cell_type"])]


def code_lines(cell):
    lines = prose.source(cell).splitlines()
    return [
        line for line in lines if line.strip() and not line.lstrip().startswith("#")
    ]


def bare(words):
    """Prose without code, maths, roles, link targets and tables' rules."""
    words = re.sub(r"^(`{3,}|:{3,})[^\n]*$", "", words, flags=re.M)
    words = re.sub(r"\$\$.+?\$\$", "", words, flags=re.S)
    words = re.sub(r"\{[\w:-]+\}`[^`]*`|`[^`]*`|\$[^$\n]+\$", "", words)
    words = re.sub(r"^\([\w-]+\)=$|^:\w+:.*$", "", words, flags=re.M)
    return re.sub(r"\]\([^)]*\)", "]", words)


def test_source_form(path):
    notebook = prose.read(path)
    again = text.load(text.dump(notebook), notebook)
    assert again == notebook, f"{path.name}: write it with `dapo book from-text`"
    assert set(prose.parameters(notebook, path.name)) == {"lang", "seed", "profile"}
    for cell in cells(path, "code"):
        assert not cell["outputs"] and cell["execution_count"] is None, cell["id"]
        assert not re.search(r"^\s*[!%]", prose.source(cell), re.M), cell["id"]


def test_twins(path):
    faults = [f for f in twins.faults(LAYOUT) if f.startswith((path.name, "book/"))]
    assert faults == []


def test_cells_are_short(path):
    sizes = [len(code_lines(c)) for c in cells(path, "code")]
    wide = [
        f"{c['id']}: {line}"
        for c in cells(path, "code")
        for line in prose.source(c).splitlines()
        if len(line) > 79
    ]
    assert wide == [], "lines over 79 columns are clipped on the page"
    assert median(sizes) <= 8 and quantiles(sizes, n=10)[-1] <= 20, sizes


def test_there_is_enough_prose(path):
    english = [prose.source(c) for c in cells(path) if prose.language(c) == "en"]
    shown = [c for c in cells(path, "code") if "parameters" not in prose.tags(c)]
    assert sum(map(len, english)) / len(shown) >= 350


def test_contract(path):
    """The sections every chapter on a mechanism has, by the end of their labels."""
    words = "\n".join(prose.source(c) for c in cells(path) if prose.language(c) == "en")
    labels = re.findall(r"^\(([\w-]+)\)=", words, re.M)
    ends = [label.rsplit("-", 1)[-1] for label in labels]
    found = [end for end in ends if end in CONTRACT]
    if "map" not in ends:
        pytest.skip("a chapter of another kind; it has no paper-to-code row")
    assert found == CONTRACT, f"{path.name}: sections {found}, expected {CONTRACT}"
    solutions = [c for c in cells(path, "code") if "solution" in prose.tags(c)]
    assert len(solutions) >= 3, "three exercises with executed solutions"


def test_every_name_of_ours_exists(path):
    """A renamed function or test makes the paper-to-code row stale: find it."""
    words = "\n".join(prose.source(c) for c in cells(path, "markdown"))
    for name in set(re.findall(r"`(dapo_lib(?:\.\w+)+)`", words)):
        assert pkgutil.resolve_name(name), name
    for name in set(re.findall(r"`((?:tests|dapo_lib|notebooks)/[\w./-]+)`", words)):
        assert (LAYOUT.root / name).exists(), name


def test_result_numbers_come_from_a_run(path):
    """A decimal in prose is a setting in $maths$ or a {result} role, never typed."""
    typed = re.compile(r"(?<![\d.\w])\d{1,3}\.\d+%?(?![.\d])|(?<![\w.])\.\d+")
    faults = []
    for cell in cells(path, "markdown"):
        words = re.sub(
            r"\bv?\d+\.\d+\.\d+\b|§ ?\d+(\.\d+)*", "", bare(prose.source(cell))
        )
        faults += [f"{cell['id']}: {number}" for number in typed.findall(words)]
    assert faults == []


def test_chinese_is_set_as_chinese(path):
    """Rules of style that a machine can see: bold, punctuation, spaces, terms."""
    avoid = {
        word
        for entry in glossary.load(LAYOUT)
        for word in entry.get("avoid_zh", [])
        if len(word) > 2 and re.fullmatch(r"[\u4e00-\u9fff]+", word)
    }
    avoid -= {entry["zh"] for entry in glossary.load(LAYOUT)}
    avoid -= {"高裁剪", "裁剪上界", "裁剪下界"}  # right for the bounds themselves
    rules = {
        "punctuation inside bold": r"\*\*[^*\n]*[，。；：？！（）“”]\*\*",
        "half-width punctuation after a character": r"[\u4e00-\u9fff][,;:?!](?!\))",
        "no space before Latin": r"[\u4e00-\u9fff][A-Za-z0-9$`](?<!_)",
        "no space after Latin": r"[A-Za-z0-9$`][\u4e00-\u9fff]",
        "space beside full-width": r"[，。；：？！（）] | [，。；：？！（）]",
    }
    faults = []
    for cell in cells(path, "markdown"):
        if prose.language(cell) != "zh":
            continue
        words = re.sub(
            r"^(`{3,}|:{3,}).*$|^\|[-: |]+\|$", "", prose.source(cell), flags=re.M
        )
        words = re.sub(r"\$\$.+?\$\$", "", words, flags=re.S)
        words = re.sub(r"\{[\w:-]+\}`([^`<]*)(<[^`]*)?`", r"`\1`", words)
        words = re.sub(r"`[^`\n]*`", "`x`", words)
        words = re.sub(r"\$[^$\n]+\$", "$x$", words)
        words = re.sub(
            r"\]\([^)\n]*\)|\[| ?\| ?|^#+ |^\([\w-]+\)=|^:\w+:.*$",
            "\n",
            words,
            flags=re.M,
        )
        for what, pattern in rules.items():
            hits = re.findall(f".{{0,6}}(?:{pattern}).{{0,6}}", words)
            faults += [f"{cell['id']}: {what}: {hit!r}" for hit in hits]
        faults += [f"{cell['id']}: avoid {word}" for word in avoid if word in words]
    assert faults == []
