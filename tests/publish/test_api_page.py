"""The API reference shows every public module once, and no docstring can stop it."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest
import yaml
from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import roles

from dapo_lib.publish import api_page

ALL = [m for room in api_page.ROOMS for m in api_page.room_modules(room)]


def test_every_module_has_one_place():
    assert len(ALL) == len(set(ALL))
    shown = {m for m in api_page.modules() if m in ALL}
    silent = set(api_page.modules()) - shown
    for name in silent:
        assert not api_page.public(importlib.import_module(name)), name
    assert {"dapo_lib.objective", "dapo_lib.lm.model", "dapo_lib.check"} <= shown
    assert not any(m.startswith(("dapo_lib.cli", "dapo_lib.publish")) for m in ALL)


def test_pages_and_overview_name_the_same_modules():
    pages = "".join(api_page.page(room) for room in api_page.ROOMS)
    overview = api_page.overview()
    for name in ALL:
        assert f".. automodule:: {name}\n" in pages and f"[`{name}`]" in overview


@pytest.fixture
def known_roles():
    """Sphinx's roles, so that docutils alone can read a docstring."""
    before = dict(roles._roles)
    for name in ("func", "class", "mod", "meth", "data", "exc", "attr"):
        roles.register_local_role(name, roles.GenericRole(name, nodes.literal))
    yield
    roles._roles.clear()
    roles._roles.update(before)


def documented(module):
    """A module, its public functions and classes, and their methods."""
    yield module.__name__, module
    for name in api_page.public(module):
        value = getattr(module, name)
        yield f"{module.__name__}.{name}", value
        if inspect.isclass(value):
            for inner, method in vars(value).items():
                if inspect.isfunction(method) and method.__doc__:
                    yield f"{module.__name__}.{name}.{inner}", method


def test_no_docstring_warns(known_roles):
    settings = {"report_level": 2, "halt_level": 5, "warning_stream": False}
    faults, seen = [], 0
    for module in map(importlib.import_module, ALL):
        for name, value in documented(module):
            seen += 1
            lines = api_page.tidy((inspect.getdoc(value) or "").splitlines())
            tree = publish_doctree("\n".join(lines), settings_overrides=settings)
            said = [m.astext() for m in tree.findall(nodes.system_message)]
            faults += [f"{name}: {text}" for text in said]
    assert seen > 400 and faults == []


@pytest.mark.parametrize(
    "hostile",
    [
        "*args and **kwargs",
        "a_ b__ |c| `d",
        "x |\n| y",
        "``",
        "`a` `` b ``",
        "<c>_",
        "* a*",
    ],
)
def test_odd_text_is_escaped(hostile, known_roles):
    text = "\n".join(api_page.tidy(["One sentence.", "", *hostile.split("\n")]))
    settings = {"report_level": 2, "halt_level": 2, "warning_stream": False}
    assert publish_doctree(text, settings_overrides=settings).astext()


def test_defaults_are_shown_as_written():
    """A default that is a folder would print where this checkout lies."""
    root = Path(__file__).resolve().parents[2]
    config = yaml.safe_load((root / "_config.yml").read_text("utf-8"))
    assert config["sphinx"]["config"]["autodoc_preserve_defaults"] is True
