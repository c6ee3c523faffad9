"""What the widgets share: language, texts, the joined module, checks and rounding.

Each widget is an ordinary `anywidget`: traits, `observe` and `jslink` work in Jupyter;
in the static page `host.js` brings the same module to life. Left out: computing in the
kernel. A widget's mathematics lives in its .mjs and is tested against this library.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import anywidget
import traitlets

from dapo_lib.errors import expect
from dapo_lib.labels import LANGS, Lang, label, table

_IMPORT = re.compile(r"^import \{[^}]*\} from \"\./kit\.mjs\";\n", re.MULTILINE)


@cache
def asset(name: str) -> str:
    """The text of a file of this folder, such as `host.js`.

    >>> asset("host.js").startswith("// Brings the widgets")
    True
    """
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def module_text(name: str) -> str:
    """A widget's module with the shared kit in front: one self-contained file.

    Only the widget's own names stay exported. Comment lines and indentation go, since
    the text travels with every page.

    >>> "import " in module_text("epsilon").split("export", 1)[0]
    False
    """
    kit = asset("kit.mjs").replace("\nexport ", "\n")
    lines = (kit + _IMPORT.sub("", asset(f"{name}.mjs"))).splitlines()
    stripped = (line.strip() for line in lines)
    return "\n".join(line for line in stripped if line and not line.startswith("//"))


def style_text() -> str:
    """The widgets' style sheet without the blanks that only people need."""
    return re.sub(r"(?<=[{};,:])\s+|\s+(?=[{}])", "", asset("kit.css"))


def texts_of(name: str, lang: Lang) -> dict[str, str]:
    """All labels `widgets.<name>.<key>` in a language, as {key: words}."""
    prefix = f"widgets.{name}."
    own = [key for key in table() if key.startswith(prefix)]
    return {key.removeprefix(prefix): table()[key][lang] for key in own}


def compact(data: Any, digits: int = 4) -> Any:
    """Numbers rounded to significant digits, NaN and inf to None, arrays to lists.

    >>> compact({"a": [0.123456, float("nan")], "n": 3})
    {'a': [0.1235, None], 'n': 3}
    """
    if hasattr(data, "tolist"):
        data = data.tolist()
    if isinstance(data, Mapping):
        return {str(key): compact(value, digits) for key, value in data.items()}
    if isinstance(data, Sequence) and not isinstance(data, str):
        return [compact(value, digits) for value in data]
    if isinstance(data, float):
        return float(f"{data:.{digits}g}") if math.isfinite(data) else None
    return data


def need(data: Mapping, where: str, *keys: str) -> None:
    """Raise ``BadInput`` unless `data` is a mapping with these keys."""
    wanted = f"a mapping with {', '.join(keys)}"
    expect(isinstance(data, Mapping), where, type(data).__name__, wanted)
    missing = [key for key in keys if key not in data]
    expect(not missing, where, f"no {', '.join(missing)}", wanted)


def in_language(label: Mapping[str, str] | str, lang: Lang) -> str:
    """A label that travels with data, {en, zh} or plain, in one language."""
    return label if isinstance(label, str) else label[lang]


class DapoWidget(anywidget.AnyWidget):
    """A widget with a language and its words.

    `lang` is "en" or "zh"; the page's own language wins in the static book. Raises
    ``BadInput`` on another language, ``TraitError`` on a value outside its trait.
    """

    name = ""
    lang = traitlets.Enum(LANGS, default_value="en").tag(sync=True)
    texts = traitlets.Dict().tag(sync=True)

    def __init__(self, lang: Lang = "en", **traits: Any) -> None:
        expect(lang in LANGS, "lang", repr(lang), "en or zh")
        unknown = [key for key in traits if not self.has_trait(key)]
        known = ", ".join(sorted(self.choices()))
        expect(not unknown, type(self).__name__, ", ".join(unknown), f"one of {known}")
        super().__init__(lang=lang, texts=self.texts_in(lang), **traits)

    def texts_in(self, lang: Lang) -> dict[str, str]:
        """The words that travel with the widget; changing `lang` sends the others."""
        return texts_of(self.name, lang)

    @traitlets.observe("lang")
    def _translate(self, change: dict) -> None:
        self.texts = self.texts_in(change["new"])

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if cls.__dict__.get("name"):  # not the copy that add_traits makes
            cls._esm = module_text(cls.name)
            cls._css = style_text()
        super().__init_subclass__(**kwargs)

    @classmethod
    def choices(cls) -> list[str]:
        """The names of the traits a reader or an author may set."""
        base = {*anywidget.AnyWidget.class_trait_names(), "texts"}
        return [t for t in cls.class_trait_names(sync=True) if t not in base]

    def words(self, key: str, lang: Lang | None = None, **values: object) -> str:
        """The label `widgets.<name>.<key>`, with {values} filled in."""
        return label(f"widgets.{self.name}.{key}", lang or self.lang).format(**values)

    def describe(self, lang: Lang | None = None) -> str:
        """One sentence with the widget's message, for print and screen readers."""
        raise NotImplementedError
