"""The book's Sphinx extension: thin, everything it does is in dapo_lib/publish.

On `source-read` a notebook is replaced by its executed copy in the page's language;
every page gets a link to the same page of the other language; results, glossary terms
and search are fed from the build's own files. Left out: execution.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

from dapo_lib.errors import DapoError
from dapo_lib.publish import (
    api_page,
    around,
    card,
    chapter,
    glossary,
    languages,
    numbers,
    search,
    typeset,
)
from dapo_lib.publish.home import home
from dapo_lib.publish.layout import Layout
from dapo_lib.publish.outputs import Page

log = logging.getLogger(__name__)
PACKAGE = Path(glossary.__file__).resolve().parents[1]


def lang_of(app: Sphinx) -> str:
    """The two-letter language of the site that is being built."""
    return languages.from_tag(app.config.language)


def prepare(app: Sphinx, config: Any) -> None:
    """Feed the glossary to the search's dictionary, and Chinese queries a splitter."""
    layout = Layout(Path(app.confdir))
    search.write_dictionary(glossary.load(layout), layout.build / "jieba.txt")
    config.html_search_options = {"dict": str(layout.build / "jieba.txt")}
    search.install_splitter(Path(__file__).parents[1] / "_static" / "split-query.js")
    config.html_static_path.append(str(PACKAGE / "widgets" / "host.js"))
    # signatures name types of torch and numpy, whose documentation is not at hand
    config.nitpick_ignore_regex = [("py:.*", ".*")]
    words = languages.interface(lang_of(app))
    config.nb_code_prompt_show = words["show_code"]
    config.nb_code_prompt_hide = words["hide_code"]


def swap(app: Sphinx, docname: str, text: list[str]) -> None:
    """Put the executed copy of a notebook in place of its source."""
    if not docname.startswith("notebooks/"):
        return
    layout, lang = Layout(Path(app.confdir)), lang_of(app)
    try:
        notebook = chapter.executed(layout, docname.split("/")[-1], lang)
        page = Page()
        page.rewrite(notebook, "../_images")
    except DapoError as error:
        raise ExtensionError(f"{docname}: {error}") from error
    chapter.write_figures(page.files, Path(app.outdir) / "_images")
    text[0] = json.dumps(notebook)


def clear(app: Sphinx, doctree: nodes.document) -> None:
    """Undress our own HTML, or the theme paints a light box behind it in dark mode."""
    for raw in doctree.findall(nodes.raw):
        if 'class="dapo-' in raw.astext()[:120]:
            raw["classes"] = ["dapo-output"]


def anchor(app: Sphinx, doctree: nodes.document) -> None:
    """Make a heading's label its address, the same in both languages."""
    for section in doctree.findall(nodes.section):
        labels = [n for n in section["names"] if doctree.nametypes.get(n)]
        first = [doctree.nameids[n] for n in labels if doctree.nameids.get(n)]
        section["ids"] = list(dict.fromkeys([*first, *section["ids"]]))


def hover(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Show a term's definition, or a cited work, when the pointer rests on it."""
    definitions = glossary.definitions(Layout(Path(app.confdir)), lang_of(app))
    works = cited_works(app)
    for reference in doctree.findall(nodes.reference):
        work = works.get(reference.get("refuri", "").rpartition("#")[2])
        if work:
            reference["reftitle"] = work
            continue
        inner = reference.next_node(nodes.inline)
        if inner is not None and "std-term" in inner["classes"]:
            target = reference.get("refuri", "").split("#term-")[-1]
            name = reference.astext().lower()
            found = definitions.get(name) or definitions.get(target.replace("-", " "))
            if found:
                reference["reftitle"] = found


def cited_works(app: Sphinx) -> dict[str, str]:
    """Anchor of an entry in the bibliography -> the entry in plain words."""
    return {
        entry.citation_id: entry.formatted_entry.text.render_as("text")
        for entry in app.env.get_domain("cite").citations
    }


def link_languages(app, pagename, templatename, context, doctree) -> None:
    """The header's language link, hreflang, share tags, and the security policy."""
    layout, lang = Layout(Path(app.confdir)), lang_of(app)
    place = home(layout)
    context.update(languages.page_links(pagename, lang))
    title = re.sub(r"<[^>]+>", "", context.get("title") or "")
    tags = context["language_metatags"]
    tags += around.share_tags(place, pagename, lang, title, summary(doctree))
    context["metatags"] = context.get("metatags", "") + tags
    if pagename.startswith("notebooks/") and "</h1>" in context.get("body", ""):
        name = pagename.split("/")[-1]
        took = around.seconds(layout, name, lang)
        line = around.facts_line(place, name, lang, took)
        context["body"] = context["body"].replace("</h1>", f"</h1>{line}", 1)


def summary(doctree: nodes.document | None) -> str:
    """The first words of a page: a paragraph without maths, cut at 200 characters."""
    for paragraph in doctree.findall(nodes.paragraph) if doctree is not None else ():
        if paragraph.next_node(nodes.math) is None and len(paragraph.astext()) > 20:
            text = " ".join(paragraph.astext().split())
            return text if len(text) <= 200 else text[:199] + "…"
    return ""


def finish(app: Sphinx, error: Exception | None) -> None:
    """Readers download their own language, executed and clean."""
    if error is not None or app.builder.name != "html":
        return
    layout, lang = Layout(Path(app.confdir)), lang_of(app)
    for docname in sorted(app.env.found_docs):
        if docname.startswith("notebooks/"):
            name = docname.split("/")[-1]
            folder = Path(app.outdir) / "_sources" / "notebooks"
            chapter.write_downloads(layout, name, lang, folder)
    for page in Path(app.outdir).rglob("*.html"):
        languages.tidy(page)
    card.write(Path(app.outdir) / around.CARD, lang)
    languages.tidy_plurals(Path(app.outdir) / "_static" / "doctools.js")


class Result(SphinxRole):
    """`{result}`name .1%``: a number that a notebook recorded, formatted."""

    def run(self):
        """The formatted number, or a warning (fatal under -W)."""
        layout = Layout(Path(self.config.project_root or self.env.srcdir))
        lang = languages.from_tag(self.config.language)
        full = self.name == "interval"
        try:
            text = numbers.render(layout, self.text, lang, full=full)
        except DapoError as error:
            log.warning(str(error), location=self.get_location())
            return [nodes.problematic(text=self.text)], []
        return [nodes.inline(text=text, classes=["dapo-result"])], []


class Glossary(Directive):
    """The glossary page, from book/glossary.yml."""

    def run(self) -> list[nodes.Node]:
        """One definition list that `{term}` finds."""
        env = self.state.document.settings.env
        lang = languages.from_tag(env.config.language)
        lines = glossary.page(Layout(Path(env.srcdir)), lang)
        holder = nodes.container(classes=["dapo-glossary"])
        source = str(Path(env.srcdir) / "book/glossary.yml")
        content = StringList(lines, source=source)
        self.state.nested_parse(content, self.content_offset, holder)
        return [holder]


def docstring(app, what, name, obj, options, lines: list[str]) -> None:
    """Our docstrings use Markdown's backticks; nothing in one may stop the build."""
    lines[:] = api_page.tidy(lines)


def unwanted(app, what, name, obj, skip, options) -> bool | None:
    """Python calls the fields of a named tuple by number, which says nothing."""
    text = getattr(obj, "__doc__", None) or ""
    return True if text.startswith("Alias for field number") else None


def link_code(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """A full name of ours in a text leads to its place in the API reference."""
    known = app.env.domaindata["py"]["objects"]
    for literal in list(doctree.findall(nodes.literal)):
        entry = known.get(literal.astext())
        inside = isinstance(literal.parent, nodes.reference | nodes.title)
        if entry is None or inside or entry.docname == docname:
            continue
        address = app.builder.get_relative_uri(docname, entry.docname)
        target = nodes.reference(refuri=f"{address}#{entry.node_id}", internal=True)
        literal.replace_self(target)
        target += literal


def set_type(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """No gap between Chinese words, no line that begins with a comma."""
    if lang_of(app) == "zh":
        typeset.close_up(doctree)
    typeset.hold(doctree)


def missing_term(app, env, node: pending_xref, contnode):
    """A term may be written in either language: look its glossary entry up."""
    if node.get("reftype") != "term":
        return None
    target = glossary.canonical(
        Layout(Path(app.confdir)), node["reftarget"], lang_of(app)
    )
    if target is None or target == node["reftarget"]:
        return None
    domain = env.get_domain("std")
    args = (env, node["refdoc"], app.builder, "term", target, node, contnode)
    return domain.resolve_xref(*args)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect everything; the order of the handlers is that of a page's life."""
    app.add_config_value("project_root", "", "env")
    app.add_config_value("dapo_repository", "", "env")  # both are read by home.py
    app.add_config_value("dapo_site", "", "env")
    app.add_directive("dapo-glossary", Glossary)
    app.add_role("result", Result())
    app.add_role("interval", Result())
    app.connect("config-inited", prepare)
    app.connect("source-read", swap)
    app.connect("doctree-read", clear)
    app.connect("doctree-read", anchor, priority=100)  # before the toc takes ids
    app.connect("missing-reference", missing_term)
    app.connect("doctree-resolved", hover)
    app.connect("doctree-resolved", link_code)
    app.connect("doctree-resolved", set_type, priority=900)  # links are in place
    app.connect("autodoc-process-docstring", docstring)
    app.connect("autodoc-skip-member", unwanted)
    app.connect("html-page-context", link_languages, priority=400)
    app.connect("build-finished", finish)
    app.add_js_file("host.js", loading_method="defer")
    return {"parallel_read_safe": False, "parallel_write_safe": False}
