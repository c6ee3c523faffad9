"""What stands around the pages: share tags, the page for a lost reader, sitemap, data.

Left out: the pages, and where the book lives (home.py).
"""

from __future__ import annotations

import csv
import io
import shutil
from html import escape
from pathlib import Path

from dapo_lib.experiments import published
from dapo_lib.files import write_bytes
from dapo_lib.labels import label
from dapo_lib.publish import languages
from dapo_lib.publish.home import Home, home, sitemap
from dapo_lib.publish.layout import LANGS, LANGUAGE_TAGS, Layout
from dapo_lib.publish.reference import Row

CARD = "_static/card.png"
SHARED = "tex-svg-full.js"  # 2.3 MB, the same for both languages
UNUSED = ("*.map", "readme", "all.min.js", "*.ttf")  # the icons' .woff2 serves


def share_tags(
    place: Home, pagename: str, lang: str, title: str, description: str
) -> str:
    """Open Graph tags of a page; addresses are absolute where the site's is known."""
    up = "../" * pagename.count("/")
    base = f"{place.site}{lang}/" if place.site else up
    facts = {
        "og:title": title,
        "og:type": "article",
        "og:locale": LANGUAGE_TAGS[lang].replace("-", "_"),
        "og:description": description,
        "og:image": f"{base}{CARD}",
    }
    if place.site:
        facts["og:url"] = f"{place.site}{lang}/{pagename}.html"
    lines = [
        f'<meta property="{key}" content="{escape(value)}">'
        for key, value in facts.items()
        if value
    ]
    lines.append('<meta name="twitter:card" content="summary_large_image">')
    if description:
        lines.append(f'<meta name="description" content="{escape(description)}">')
    return "\n  ".join(["", *lines, ""])


def facts_line(place: Home, notebook: str, lang: str, seconds: str) -> str:
    """Under a chapter's title: how long it ran, and where it can be run; HTML."""
    parts = []
    if seconds:
        parts.append(label("book.ran_in", lang).format(seconds=seconds))
    buttons = place.buttons(notebook, lang)
    if buttons:
        links = " · ".join(
            f'<a class="dapo-run" href="{escape(address)}">{name}</a>'
            for name, address in buttons.items()
        )
        parts.append(f"{label('book.run_in', lang)} {links}")
    return f'<p class="dapo-facts">{" · ".join(parts)}</p>' if parts else ""


LOST = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
{policy}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>404 · The DAPO book · DAPO 双语书</title>
<style>
@font-face {{ font-family: "Dapo CJK"; unicode-range: U+2E80-9FFF, U+FF00-FFEF,
U+3000-303F; src: local("PingFang SC"), local("Microsoft YaHei"),
local("Noto Sans CJK SC"), url("{site}zh/_static/noto-sans-sc.woff2"); }}
body {{ font: 18px/1.7 system-ui, "Dapo CJK", sans-serif; margin: 12vh auto;
max-width: 32em; padding: 0 1em; color-scheme: light dark; }}
:lang(zh) {{ font-family: "Dapo CJK", system-ui, sans-serif; }}
section + section {{ margin-top: 3em; }} h1 {{ font-size: 1.4em; }}</style>
</head>
<body>
{sections}
<script>
// the page is served at any depth: its links start where the site does
const base = location.pathname.match(/^(.*?)\\/(?:en|zh)\\//)?.[1]
  ?? document.querySelector("a[data-path]").pathname.replace(/\\/en\\/.*$/, "");
for (const link of document.querySelectorAll("a[data-path]")) {{
  if (location.protocol !== "file:") link.href = `${{base}}/${{link.dataset.path}}`;
}}
if (/\\/zh\\//.test(location.pathname)) {{
  document.documentElement.lang = "zh-CN";
  document.body.prepend(document.querySelector("section[lang=zh-CN]"));
}}
</script>
</body>
</html>
"""


def lost_page(place: Home) -> str:
    """The one page for a wrong address, in both languages, complete in itself.

    >>> lost_page(Home()).count("<section")
    2
    """
    sections = []
    for lang in LANGS:
        links = []
        for key, path in (
            ("home_page", f"{lang}/book/{lang}/index.html"),
            ("search_page", f"{lang}/search.html"),
        ):
            words = label(f"book.{key}", lang)
            links.append(f'<a href="{place.site}{path}" data-path="{path}">{words}</a>')
        said, way = label("book.lost", lang), label("book.lost_way", lang)
        sections.append(
            f'<section lang="{LANGUAGE_TAGS[lang]}"><h1>404: {said}</h1>'
            f"<p>{way}</p><p>{' · '.join(links)}</p></section>"
        )
    facts = {"policy": languages.POLICY_TAG, "site": place.site}
    text = LOST.format(sections="\n".join(sections), **facts)
    return languages.seal(text)


def finish(layout: Layout, langs: tuple[str, ...]) -> None:
    """Write what the whole site shares: 404, data, scripts, sitemap where known."""
    place = home(layout)
    write_bytes(layout.site / "404.html", lost_page(place).encode())
    copy_data(layout)
    share_scripts(layout.site, langs)
    if place.site:
        pages = [
            path.relative_to(layout.site).as_posix()
            for lang in langs
            for path in sorted((layout.site / lang).rglob("*.html"))
            if path.parent != layout.site / lang and "_static" not in path.parts
        ]
        write_bytes(layout.site / "sitemap.xml", sitemap(place, pages).encode())
        robots = f"User-agent: *\nAllow: /\nSitemap: {place.site}sitemap.xml\n"
        write_bytes(layout.site / "robots.txt", robots.encode())


def copy_data(layout: Layout) -> None:
    """The published tables and the recorded numbers, once for both languages."""
    folder = layout.site / "data"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in published.names():
        shutil.copyfile(published.FOLDER / f"{name}.csv", folder / f"{name}.csv")
    numbers = layout.generated / "metrics.csv"
    if numbers.exists():
        shutil.copyfile(numbers, folder / "metrics.csv")


def share_scripts(site: Path, langs: tuple[str, ...]) -> None:
    """Keep the big script once, beside the languages, and lead every page to it."""
    for lang in langs:
        script = site / lang / "_static" / SHARED
        if not script.exists():
            continue
        target = site / "shared" / SHARED
        target.parent.mkdir(exist_ok=True)
        script.replace(target)
        for page in (site / lang).rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            new = text.replace(f"_static/{SHARED}", f"../shared/{SHARED}")
            if new != text:
                page.write_text(new, encoding="utf-8")


def numbers_csv(rows: list[Row]) -> str:
    """Every recorded number as one CSV table."""
    out = io.StringIO()
    fields = ["notebook", "name", "value", "low", "high", "seeds", "unit"]
    fields += ["paper", "source", "tolerance", "drift"]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(fields)
    for row in sorted(rows, key=lambda row: row.record.name):
        entry = {**row.record.model_dump(), "notebook": row.notebook}
        entry["drift"] = row.drift
        writer.writerow(["" if entry[f] is None else entry[f] for f in fields])
    return out.getvalue()


def seconds(layout: Layout, notebook: str, lang: str) -> str:
    """How long the executed copy took, or nothing where it is not known."""
    path = layout.executed(lang) / f"{notebook}.seconds"
    try:
        return f"{float(path.read_text()):.0f}"
    except (OSError, ValueError):
        return ""
