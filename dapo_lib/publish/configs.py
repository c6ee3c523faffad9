"""The configuration and table of contents of each language, from the root's.

English uses _config.yml and _toc.yml as they are; the Chinese pair is written to
`_build` from them and book/zh/config.yml. Left out: page titles (the pages have them).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from dapo_lib.errors import BadInput
from dapo_lib.files import write_bytes
from dapo_lib.publish.layout import Layout


def prepare(layout: Layout, lang: str) -> tuple[Path, Path]:
    """The configuration and toc files of a language, made unless it is English."""
    config, toc = layout.root / "_config.yml", layout.root / "_toc.yml"
    if lang == "en":
        return config, toc
    override = read(layout.root / "book" / lang / "config.yml")
    merged = merge(read(config), override["config"])
    local = merged["sphinx"]["local_extensions"]
    # the folder is looked up beside the configuration file
    merged["sphinx"]["local_extensions"] = {k: f"../{v}" for k, v in local.items()}
    contents = translate(read(toc), lang, override["captions"])
    return (
        _write(layout.build / f"_config.{lang}.yml", merged),
        _write(layout.build / f"_toc.{lang}.yml", contents),
    )


def preview(layout: Layout, lang: str, names: list[str], folder: Path) -> Path:
    """A toc in `folder` of only these notebooks, the home page and the glossary.

    A notebook that _toc.yml does not list yet is shown all the same.
    """
    files = [f"notebooks/{name}" for name in names]
    files += [f"book/{lang}/{page}" for page in ("glossary", "bibliography")]
    chapters = [{"file": file} for file in files]
    contents = {"format": "jb-book", "root": f"book/{lang}/index", "chapters": chapters}
    return _write(folder / f"_toc.{lang}.yml", contents)


def merge(base: Any, override: Any) -> Any:
    """`override` laid over `base`, key by key; lists and values replace.

    >>> merge({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}})
    {'a': {'b': 3, 'c': 2}}
    """
    if not (isinstance(base, dict) and isinstance(override, dict)):
        return override
    both = {**base, **override}
    return {
        k: merge(base[k], override[k]) if k in base and k in override else v
        for k, v in both.items()
    }


def translate(toc: Any, lang: str, captions: dict[str, str]) -> Any:
    """A toc with book/en files replaced and captions in `lang`.

    Raises ``BadInput`` on a caption without a translation.

    >>> translate({"root": "book/en/index"}, "zh", {})
    {'root': 'book/zh/index'}
    """
    if isinstance(toc, list):
        return [translate(item, lang, captions) for item in toc]
    if not isinstance(toc, dict):
        return toc
    result = {}
    for name, value in toc.items():
        if name in ("root", "file"):
            value = value.replace("book/en/", f"book/{lang}/", 1)
        elif name == "caption":
            if value not in captions:
                raise BadInput(f"book/{lang}/config.yml: no caption for {value!r}")
            value = captions[value]
        result[name] = translate(value, lang, captions)
    return result


def read(path: Path) -> dict[str, Any]:
    """A YAML file as data. Raises ``BadInput`` where it cannot be read."""
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise BadInput(f"{path.name}: cannot be read ({reason})") from error


def _write(path: Path, content: dict[str, Any]) -> Path:
    text = yaml.safe_dump(content, allow_unicode=True, sort_keys=False)
    write_bytes(path, text.encode())
    return path
