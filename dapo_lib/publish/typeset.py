"""How a finished page is set: no gap between Chinese words, no line that begins with a
comma, long names that break where their parts meet.

The first two work on the document tree, so that search and the page see the same text;
the third on the page. Left out: the words themselves, and what a style sheet can do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from docutils import nodes

KEEP = "dapo-keep"
_CLOSING = re.compile(r"[，。；：？！、）】》〉」』”’…,.;:?!)\]]+")
_OPENING = re.compile(r"[（【《〈「『“‘(\[]+$")
_HAN = re.compile(r"[\u2e80-\u2fff\u3400-\u9fff]")
_MARK = re.compile(r"[\u3001-\u303f\uff01-\uff0f\uff1a-\uff20“”]")
_APART = (nodes.literal, nodes.math, nodes.raw)  # code and formulas keep their gap
_TABLE = re.compile(r"<table\b.*?</table>", re.S)
_NAME = re.compile(r'(?<=<span class="pre">)[^<>\s]{12,}(?=</span>)')


def close_up(doctree: nodes.Node) -> None:
    """Drop the space that Markdown needs, and Chinese does not have, beside a link.

    Sources write a space around roles and bold; between two Chinese characters, and
    beside full-width punctuation, it would show as a gap.

    >>> line = nodes.paragraph("", "", nodes.Text("看 "), nodes.strong("", "对错"))
    >>> line += [nodes.Text(" 的 "), nodes.strong("", "GRPO")]
    >>> close_up(line)
    >>> line.astext()
    '看对错的 GRPO'
    """
    for block in _blocks(doctree):
        leaves = list(block.findall(nodes.Text))
        for i in range(len(leaves) - 1):
            if any(isinstance(leaf.parent, _APART) for leaf in leaves[i : i + 2]):
                continue
            for j, text in zip((i, i + 1), seam(*leaves[i : i + 2]), strict=True):
                if text != leaves[j]:
                    new = nodes.Text(text)
                    leaves[j].parent.replace(leaves[j], new)
                    leaves[j] = new


def seam(left: str, right: str) -> tuple[str, str]:
    """Two neighbouring texts without the space between them, where Chinese has none.

    >>> seam("看的是 ", "对错"), seam("组", " A")
    (('看的是', '对错'), ('组', ' A'))
    """
    bare = left.removesuffix(" "), right.removeprefix(" ")
    if (left, right) == bare or not all(bare):
        return left, right
    pair = bare[0][-1], bare[1][0]
    between = all(map(_HAN.match, pair)) or any(map(_MARK.match, pair))
    return bare if between else (left, right)


def hold(doctree: nodes.Node) -> None:
    """Keep a formula and the punctuation beside it on one line.

    A browser sees a formula as a picture, before and after which a line may end.

    >>> line = nodes.paragraph("", "", nodes.Text("乘以 "), nodes.math("", "p"))
    >>> line += nodes.Text("，所以")
    >>> hold(line)
    >>> [part.astext() for part in line.children]
    ['乘以 ', 'p，', '所以']
    """
    for math in list(doctree.findall(nodes.math)):
        before = _split(math, -1, _OPENING)
        after = _split(math, +1, _CLOSING)
        if before or after:
            kept = nodes.inline(classes=[KEEP])
            math.replace_self(kept)
            kept += [nodes.Text(before), math, nodes.Text(after)]


def _split(math: nodes.math, side: int, marks: re.Pattern[str]) -> str:
    """Take the marks that touch a formula out of its neighbour; they are returned."""
    parent = math.parent
    place = parent.index(math) + side
    near = parent[place] if 0 <= place < len(parent) else None
    if not isinstance(near, nodes.Text):
        return ""
    found = marks.search(near) if side < 0 else marks.match(near)
    if found is None:
        return ""
    rest = near[: found.start()] if side < 0 else near[found.end() :]
    parent.replace(near, nodes.Text(rest))
    return found.group()


def breakable(page: str) -> str:
    """A page in whose tables a long name may break after a dot, a slash, a line.

    >>> breakable('<table><span class="pre">dapo_lib.objective</span></table>')
    '<table><span class="pre">dapo_<wbr>lib.<wbr>objective</span></table>'
    """

    def parts(name: re.Match[str]) -> str:
        return re.sub(r"(?<=\w)([._/=])(?=[\w\"&])", r"\1<wbr>", name.group())

    return _TABLE.sub(lambda table: _NAME.sub(parts, table.group()), page)


def _blocks(doctree: nodes.Node) -> Iterator[nodes.TextElement]:
    """Every element whose children are running text."""
    for block in doctree.findall(nodes.TextElement):
        if not isinstance(block, nodes.Inline | nodes.FixedTextElement):
            yield block
