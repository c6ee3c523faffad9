"""The two languages of the site: tags, page pairs, interface words, the entry page.

Left out: sentences. Prose lives in the notebooks and in book/.
"""

from __future__ import annotations

import base64
import re
from hashlib import sha256
from pathlib import Path

from dapo_lib.errors import BadInput, DapoError
from dapo_lib.labels import label
from dapo_lib.publish import typeset
from dapo_lib.publish.layout import LANGS, LANGUAGE_TAGS

NAMES = {"en": "English", "zh": "简体中文"}
POLICY = (
    "default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' blob:; "
    "style-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'none'"
)
POLICY_TAG = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
_DEAD = (
    r'<script type="text/x-thebe-config">.*?</script>',
    r"<script>\s*const THEBE_JS_URL.*?</script>",
    r"<script[^>]*sphinx-thebe\.js[^>]*></script>",
    r"<script>\s*kernelName =.*?</script>",
    r'<link rel="preload" as="(?:font|script)"[^>]*>',
    # a megabyte that draws icons; the style sheet's fonts draw the same ones
    r"<script[^>]*fontawesome[^>]*></script>",
)
_INTERFACE = ("show_code", "hide_code", "show_solution", "hide_solution")


def from_tag(tag: str) -> str:
    """The two-letter language of a Sphinx language setting.

    >>> from_tag("zh_CN"), from_tag("en")
    ('zh', 'en')
    """
    lang = tag.replace("_", "-").split("-")[0]
    if lang not in LANGS:
        raise BadInput(f"language {tag!r}: expected en or zh_CN")
    return lang


def interface(lang: str) -> dict[str, str]:
    """The few words that the build puts on a page itself."""
    return {name: label(f"book.{name}", lang) for name in _INTERFACE}


def twin(pagename: str, lang: str, other: str) -> str:
    """The same page in the other language.

    >>> twin("book/en/index", "en", "zh"), twin("notebooks/03_x", "en", "zh")
    ('book/zh/index', 'notebooks/03_x')
    """
    own, its = f"book/{lang}/", f"book/{other}/"
    return its + pagename.removeprefix(own) if pagename.startswith(own) else pagename


def page_links(pagename: str, lang: str) -> dict[str, object]:
    """What the templates need: the other language's page and the head's link tags."""
    up = "../" * (pagename.count("/") + 1)
    address = {
        other: f"{up}{other}/{twin(pagename, lang, other)}.html" for other in LANGS
    }
    tags = [POLICY_TAG]
    for other in LANGS:
        tag = LANGUAGE_TAGS[other]
        tags.append(f'<link rel="alternate" hreflang="{tag}" href="{address[other]}">')
    links = [
        {
            "name": NAMES[other],
            "tag": LANGUAGE_TAGS[other],
            "href": address[other],
            "current": other == lang,
        }
        for other in reversed(LANGS)
    ]
    return {
        "language_links": links,
        "language_label": label("book.language", lang),
        "language_metatags": "\n  ".join(["", *tags, ""]),
    }


def tidy(page: Path) -> None:
    """Remove what cannot work: kernel scripts, and font preloads (file:// forbids).

    Long names in tables get places to break. What stays inline is named by its
    checksum in the page's policy.
    """
    text = page.read_text(encoding="utf-8")
    for pattern in _DEAD:
        text = re.sub(pattern, "", text, flags=re.S)
    text = text.replace('onclick="window.print()"', "data-print")  # dapo.js listens
    page.write_text(seal(typeset.breakable(text)), encoding="utf-8")


def seal(text: str) -> str:
    """A page whose policy allows the inline scripts that it has now, and no others.

    >>> page = f"{POLICY_TAG}<script>let a = 1;</script>"
    >>> "script-src 'self' blob: 'sha256-" in seal(page)
    True
    >>> "script-src 'self' 'unsafe-inline'" in seal(page)
    False
    """
    sums = []
    for attributes, code in re.findall(r"<script\b([^>]*)>(.*?)</script>", text, re.S):
        data = re.search(r'type="(?!text/javascript|module)', attributes)
        if code.strip() and "src=" not in attributes and not data:
            sums.append(base64.b64encode(sha256(code.encode()).digest()).decode())
    allowed = " ".join(f"'sha256-{s}'" for s in dict.fromkeys(sums))
    scripts = f"script-src 'self' blob: {allowed}".rstrip()
    return text.replace("script-src 'self' 'unsafe-inline' blob:", scripts, 1)


def tidy_plurals(script: Path) -> None:
    """Sphinx compiles a text to find plurals; our policy forbids it, Chinese has none.

    Raises ``DapoError`` where Sphinx's script is not as expected.
    """
    text = script.read_text(encoding="utf-8")
    plain, count = re.subn(r"new Function\([^)]*\)`,?\s*\)", "() => 0", text)
    if count != 1:
        raise DapoError(f"{script.name}: not the Sphinx 7.4 script; mend tidy_plurals")
    script.write_text(plain, encoding="utf-8")


FRONT = """<!doctype html>
<html lang="{tag}">
<head>
<meta charset="utf-8">
{policy}
<title>{title}</title>
<meta http-equiv="refresh" content="0; url=book/{lang}/index.html">
</head>
<body><p><a href="book/{lang}/index.html">{title}</a></p></body>
</html>
"""


def front_page(lang: str) -> str:
    """The page at the root of a language, which leads to its home page."""
    facts = {"tag": LANGUAGE_TAGS[lang], "title": NAMES[lang], "policy": POLICY_TAG}
    return seal(FRONT.format(lang=lang, **facts))


ENTRY = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
{POLICY_TAG}
<meta property="og:title" content="The DAPO book · DAPO 双语书">
<meta property="og:type" content="website">
<meta property="og:image" content="en/_static/card.png">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The DAPO book · DAPO 双语书</title>
<link rel="alternate" hreflang="en" href="en/book/en/index.html">
<link rel="alternate" hreflang="zh-CN" href="zh/book/zh/index.html">
<script>
const stored = (() => {{ try {{ return localStorage.getItem("dapo-lang"); }}
                        catch {{ return null; }} }})();
const wanted = stored ?? (navigator.languages ?? [navigator.language])
  .find((tag) => /^(zh|en)/i.test(tag)) ?? "en";
const lang = /^zh/i.test(wanted) ? "zh" : "en";
location.replace(`${{lang}}/book/${{lang}}/index.html`);
</script>
<style>body {{ font: 18px/1.6 system-ui, sans-serif; margin: 15vh auto;
max-width: 30em; padding: 0 1em; color-scheme: light dark; }}</style>
</head>
<body>
<p><a href="en/book/en/index.html">The DAPO book (English)</a></p>
<p lang="zh-CN"><a href="zh/book/zh/index.html">DAPO 双语书（简体中文）</a></p>
</body>
</html>
"""
