"""What a notebook shows beside figures: a function's source, a table, a widget.

Left out: figures (plots.py) and the exercises' checker (check.py).
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable
from html import escape
from numbers import Integral, Real
from typing import Any

import numpy as np


def source(*functions: Callable[..., Any], docstring: bool = False) -> None:
    """Print the lines that implement something, as they stand in the library."""
    from IPython.display import display

    text = "\n\n".join(code(f, docstring=docstring) for f in functions)
    markdown = f"```python\n{text}\n```\n"
    display({"text/markdown": markdown, "text/plain": text}, raw=True)


def code(function: Callable[..., Any], *, docstring: bool = False) -> str:
    """The source of a function, under a comment that names its file.

    >>> print(code(lambda_of).splitlines()[0])
    # dapo_lib/show.py
    """
    text = textwrap.dedent(inspect.getsource(function))
    node = ast.parse(text).body[0]
    if not docstring and ast.get_docstring(node) is not None:
        first = node.body[0]
        lines = text.splitlines()
        text = "\n".join(lines[: first.lineno - 1] + lines[first.end_lineno :])
    file = function.__module__.replace(".", "/") + ".py"
    return f"# {file}\n{text.strip()}"


def lambda_of() -> None:
    """A function for the doctest above."""


def table(rows: Any, *, caption: str = "", digits: int = 3) -> None:
    """Display a small table (DataFrame or list of dicts), its numbers rounded alike."""
    import pandas as pd
    from IPython.display import display

    frame = pd.DataFrame(rows)
    html = _typeset(frame, digits).to_html(
        index=False, border=0, classes="dapo-table", na_rep="–"
    )
    html = _align(html, [_is_words(frame[name]) for name in frame])
    words = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    html = f'<figure class="dapo-table-box">{words}<div>{html}</div></figure>'
    text = frame.to_string(index=False, float_format=lambda v: f"{v:.{digits}f}")
    display({"text/html": html, "text/plain": text}, raw=True)


def _typeset(frame: Any, digits: int) -> Any:
    """Numbers and intervals as they are printed: minus signs, commas in long columns.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"n": [8192, 36013], "x": ["[-0.1, 2]", "-34"]})
    >>> _typeset(frame, 2).values.tolist()
    [['8,192', '[−0.1, 2]'], ['36,013', '-34']]
    """
    interval = re.compile(r"[-+\d., %]*\[[-+\d., %]+\]")

    def cell(value: Any, comma: str) -> Any:
        if value is None or value != value:
            return None
        if _is_number(value):
            whole = isinstance(value, Integral)
            value = format(value, f"{comma}d" if whole else f"{comma}.{digits}f")
        elif not isinstance(value, str) or not interval.fullmatch(value):
            return value  # words stay as they are, an answer such as -34 too
        return value.replace("-", "\N{MINUS SIGN}")

    def column(values: Any) -> Any:
        long = any(_is_number(v) and abs(v) >= 10_000 for v in values)
        return values.map(lambda value: cell(value, "," if long else ""))

    return frame.astype(object).apply(column)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _is_words(column: Any) -> bool:
    """Whether every cell begins with a letter: such a column is set from the left."""
    return all(re.match(r"[^\W\d_]", v) if isinstance(v, str) else 0 for v in column)


def _align(html: str, words: list[bool]) -> str:
    """Mark the cells of the columns of words for the style sheet."""

    def row(match: re.Match[str]) -> str:
        cells = re.split(r"(?=<t[dh]\b)", match.group())
        for i, is_words in enumerate(words, 1):
            if is_words:
                cells[i] = re.sub(r"^<t([dh])", r'<t\1 class="dapo-words"', cells[i])
        return "".join(cells)

    return re.sub(r"<tr\b.*?</tr>", row, html, flags=re.S)


def words(rows: list[dict[str, Any]], *, caption: str = "") -> None:
    """Display a table of words: cells wrap and may hold Markdown. Numbers: `table`."""
    from IPython.display import display

    head = list(rows[0])
    lines = [head, ["---"] * len(head)]
    lines += [[str(row[name]) for name in head] for row in rows]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    display({"text/markdown": f"{caption}\n\n{text}\n", "text/plain": text}, raw=True)


def widget(model: Any) -> None:
    """Display a widget and, for print and screen readers, its message in a sentence."""
    from IPython.display import display

    display(model)
    # the widget's plain text names the widths as its sliders do
    symbol = r"$\\varepsilon_{\\mathrm{\1}}$"
    sentence = re.sub(r"ε_\{?(low|high)\}?", symbol, model.describe())
    display({"text/markdown": sentence, "text/plain": sentence}, raw=True)
