"""Executed outputs made fit for a static page: figures as SVG pairs, widgets as JSON.

Left out: Sphinx. book/_ext calls this on `source-read`; it returns plain notebook JSON.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html import escape
from typing import Any

from dapo_lib import live, widgets
from dapo_lib.errors import DamagedFile
from dapo_lib.files import digest
from dapo_lib.widgets.base import module_text, style_text

FIGURE = "application/vnd.dapo.figure+json"
VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
_LINKS = {"LinkModel": True, "DirectionalLinkModel": False}


@dataclass
class Page:
    """What a notebook's outputs become: files to write, and a JSON block of widgets."""

    files: dict[str, str] = field(default_factory=dict)
    widgets: dict[str, str] = field(default_factory=dict)  # model id -> page id

    def rewrite(self, notebook: dict[str, Any], images: str) -> None:
        """Replace figure and widget outputs in place; `images` is the folder's address.

        Raises ``DamagedFile`` on a widget whose state was not saved or is not as we
        save it, on a stock one, and on one whose module is not the library's.
        """
        try:
            self._rewrite(notebook, images)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise DamagedFile(
                f"outputs are not as saved ({reason[:80]}); execute the notebook again"
            ) from error

    def _rewrite(self, notebook: dict[str, Any], images: str) -> None:
        saved = notebook["metadata"].pop("widgets", {}).get(STATE, {}).get("state", {})
        last = None
        for cell in notebook["cells"]:
            for output in cell.get("outputs", []):
                data = output.get("data", {})
                if FIGURE in data:
                    output["data"] = {"text/html": self._figure(data[FIGURE], images)}
                elif VIEW in data:
                    output["data"] = {"text/html": self._widget(data[VIEW], saved)}
                    last = output["data"]
        if last is not None:
            last["text/html"] += block(page_models(self.widgets, saved))

    def _figure(self, drawing: dict[str, str], images: str) -> str:
        tags = []
        for theme in ("light", "dark"):
            name = f"figure-{digest(drawing[theme].encode())[:16]}.svg"
            self.files[name] = drawing[theme]
            tags.append(
                f'<img class="only-{theme}" src="{images}/{name}" '
                f'alt="{escape(drawing["alt"])}">'
            )
        # in a span: the theme hides the caption beside an .only-light image
        drawn = f"<span>{''.join(tags)}</span>"
        caption = drawing.get("caption", "")
        if caption:
            drawn += f"<figcaption>{escape(caption)}</figcaption>"
        return f'<figure class="dapo-figure">{drawn}</figure>'

    def _widget(self, view: dict[str, Any], saved: dict[str, Any]) -> str:
        model = view["model_id"]
        if model not in saved:
            raise DamagedFile("a widget's state was not saved; execute again")
        _expect_ours(saved[model])
        page_id = self.widgets.setdefault(model, f"w{len(self.widgets) + 1}")
        return f'<div class="dapo-widget" data-model="{page_id}"></div>'


def _expect_ours(model: dict[str, Any]) -> None:
    """Only a module of dapo_lib.widgets may run on a page, letter for letter."""
    state = model.get("state", {})
    if "_esm" not in state:
        name = model.get("model_name")
        raise DamagedFile(f"{name} needs a kernel; use a class of dapo_lib.widgets")
    name = str(state.get("_anywidget_id")).rsplit(".", 1)[-1]
    known = {c.__name__: c for c in (live.RunYourself,)}
    known |= {n: getattr(widgets, n) for n in widgets.__all__}
    ours = known.get(name)
    code = (state["_esm"], state.get("_css"))
    if ours is None or code != (module_text(ours.name), style_text()):
        raise DamagedFile(
            f"{name}: its module is not the library's; execute the notebook again"
        )


def page_models(ids: dict[str, str], saved: dict[str, Any]) -> dict[str, Any]:
    """Models, links and classes of the shown widgets, renumbered by appearance."""
    models, classes = {}, {}
    for model, page_id in ids.items():
        state = saved[model]["state"]
        name = state["_anywidget_id"].rsplit(".", 1)[-1]
        classes[name] = {"esm": state["_esm"], "css": state.get("_css", "")}
        models[page_id] = {"class": name, "state": _public(state)}
    return {"models": models, "links": _links(ids, saved), "classes": classes}


def block(content: dict[str, Any]) -> str:
    """The JSON block of a page; no text in it can close the element."""
    how = {"sort_keys": True, "ensure_ascii": False, "allow_nan": False}
    text = json.dumps(content, separators=(",", ":"), **how)
    text = text.replace("<", "\\u003c")
    return f'<script type="application/json" id="dapo-widgets">{text}</script>'


def _public(state: dict[str, Any]) -> dict[str, Any]:
    stock = ("layout", "tabbable", "tooltip", "comm", "keys")
    return {k: v for k, v in state.items() if k[0] != "_" and k not in stock}


def _links(ids: dict[str, str], saved: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for entry in saved.values():
        if entry["model_name"] not in _LINKS:
            continue
        ends = []
        for side in ("source", "target"):
            model, trait = entry["state"][side]
            ends.append((ids.get(model.removeprefix("IPY_MODEL_")), trait))
        if all(page_id for page_id, _ in ends):
            two_way = _LINKS[entry["model_name"]]
            pair = {"source": list(ends[0]), "target": list(ends[1])}
            found.append({**pair, "two_way": two_way})
    return sorted(found, key=lambda link: (link["source"], link["target"]))
