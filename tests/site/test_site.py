"""What a reader meets on every page: both languages, both ways, no network.

Left out: how it looks. Whoever writes a page looks at it.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from dapo_lib.publish.layout import LANGS

pytestmark = [
    pytest.mark.site,
    # the driver's pipes are closed by the garbage collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
CONTRAST, TOFU = (
    (Path(__file__).parent / name).read_text("utf-8")
    for name in ("contrast.js", "tofu.js")
)
PHONE = {"width": 390, "height": 844}
QUIET = ("script", "style", "pre", "code")
WITHOUT_SCRIPTS = re.compile(r"<(script|pre)\b.*?</\1>", re.S)
CHAPTER = "notebooks/03_clip_higher.html"


def pages(site: Path, lang: str) -> list[str]:
    """Every page that a reader can reach, relative to the site."""
    found = sorted((site / lang).rglob("*.html"))
    skip = ("_static", "_sources")
    inner = [p for p in found if not set(skip) & set(p.parts)]
    return [p.relative_to(site).as_posix() for p in inner if p.parent != site / lang]


class Html(HTMLParser):
    """Ids, links, images and the visible text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids, self.links, self.images, self.words = set(), [], [], []
        self.lang, self._muted, self._math = None, 0, None
        self._signature = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Collect what the tests look at."""
        facts = dict(attrs)
        self.ids.update(filter(None, [facts.get("id")]))
        if tag == "html":
            self.lang = facts.get("lang")
        if tag in ("a", "link") and facts.get("href"):
            self.links.append(facts["href"])
        if facts.get("src"):
            self.links.append(facts["src"])
        if tag == "img":
            self.images.append(facts)
        self._muted += tag in QUIET
        if tag == "dt" and "sig" in (facts.get("class") or "").split():
            self._signature = True  # a signature is code
            self._muted += 1
        if "math" in (facts.get("class") or "").split():
            self._math = tag  # holds no element of its own

    def handle_endtag(self, tag):
        """Leave muted elements."""
        self._muted -= tag in QUIET
        if tag == "dt" and self._signature:
            self._signature = False
            self._muted -= 1
        self._math = None if tag == self._math else self._math

    def handle_data(self, data):
        """Keep text outside scripts, code and maths."""
        if not self._muted and not self._math:
            self.words.append(data)


@pytest.fixture(scope="session")
def parsed(site):
    """Every page of the site, parsed once."""
    names = [name for lang in LANGS for name in pages(site, lang)]
    names += [f"{lang}/{extra}.html" for lang in LANGS for extra in ("search", "index")]
    return {n: Html((site / n).read_text("utf-8")) for n in names}


def test_every_internal_link_and_anchor_resolves(site, parsed):
    faults = []
    for name, page in parsed.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("//"):
                continue
            path = unquote(parts.path)
            target = (site / name).parent / path if path else site / name
            if not target.exists():
                faults.append(f"{name}: {link}")
            elif parts.fragment and target.suffix == ".html":
                key = target.resolve().relative_to(site.resolve()).as_posix()
                ids = parsed[key].ids if key in parsed else {unquote(parts.fragment)}
                if unquote(parts.fragment) not in ids:
                    faults.append(f"{name}: {link}")
    assert faults == []


def test_no_address_outside_is_loaded(site, parsed):
    loads = re.compile(r"<(?:script|img|iframe|source)[^>]+(?:src)=\"(?:https?:)?//")
    styles = re.compile(r"<link[^>]+stylesheet[^>]+href=\"(?:https?:)?//|@import url")
    for name in parsed:
        text = (site / name).read_text("utf-8")
        assert not loads.search(text) and not styles.search(text), name


def test_language_of_every_page(parsed):
    for name, page in parsed.items():
        assert page.lang == {"en": "en", "zh": "zh-CN"}[name.split("/")[0]], name


def test_images_say_what_they_show(parsed):
    for name, page in parsed.items():
        for image in page.images:
            alt = image.get("alt", "")
            assert alt and not re.search(r"\.(svg|png)|^_images|/", alt), (name, image)


def test_no_local_path_no_error_and_no_raw_markup(site, parsed):
    local = re.compile(r"(?<!#!)/(?:work|home|root|Users|tmp|usr)/[\w.]")
    raw = re.compile(r"\\(?:frac|mathrm|varepsilon|pi|hat)\b|\*\*|\{\w+\}`|Traceback")
    for name, page in parsed.items():
        words = "".join(page.words)
        assert not raw.search(words), (name, raw.search(words))
        text = (site / name).read_text("utf-8")
        assert not local.search(text), (name, local.search(text))
        assert 'class="output stderr' not in text, name


def test_every_page_forbids_what_is_outside(site, parsed):
    """The policy stands on each page, names its inline scripts, allows no handler."""
    handler = re.compile(r"<[a-z][^>]*\son[a-z]+\s*=")
    for name in (*parsed, "index.html", "404.html"):
        text = (site / name).read_text("utf-8")
        policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
        scripts = re.search(r"script-src ([^;]+)", policy)[1]
        assert "unsafe" not in scripts and "default-src 'self'" in policy, name
        found = handler.search(WITHOUT_SCRIPTS.sub("", text))
        assert found is None, (name, found)


def test_a_shared_link_has_title_and_picture(site, parsed):
    for name in parsed:
        if name.count("/") < 2:
            continue
        text = (site / name).read_text("utf-8")
        card = re.search(r'property="og:image" content="([^"]+)"', text)
        assert 'property="og:title"' in text and card, name
        if not urlsplit(card[1]).scheme:
            assert (site / name).parent.joinpath(card[1]).resolve().exists(), name


def test_the_lost_reader_finds_home_in_both_languages(server, visit):
    visitor = visit(server)
    for lang, word in (("en", "does not exist"), ("zh", "不存在")):
        visitor.page.goto(f"{server}/404.html?{lang}")
        section = visitor.page.locator(f"section[lang^={lang}]")
        assert word in section.inner_text()
        section.locator("a").first.click()
        visitor.page.wait_for_url(f"**/{lang}/book/{lang}/index.html")
    visitor.clean()


@pytest.mark.parametrize("lang", LANGS)
def test_terms_and_citations_say_what_they_are(lang, base, visit):
    """On hover and on keyboard focus; Escape takes it away."""
    visitor = visit(base)
    page = visitor.open(f"{lang}/book/{lang}/index.html")
    tip = page.locator("#dapo-tip")
    cited = page.locator("article a.reference[href*=bibliography]").first
    cited.hover()
    assert "2503.14476" in tip.inner_text()
    page.keyboard.press("Escape")
    assert tip.is_hidden()
    term = page.locator("article a[href*='glossary']").first
    term.focus()
    assert len(tip.inner_text()) > 10
    box = tip.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= page.viewport_size["width"]
    visitor.clean()


@pytest.mark.parametrize("lang", LANGS)
def test_names_of_ours_lead_to_the_reference(lang, site, parsed):
    links = parsed[f"{lang}/book/{lang}/paper_map.html"].links
    for name in ("objective.policy_loss", "overlong.soft_overlong", "train.train"):
        target = [x for x in links if x.endswith(f"#dapo_lib.{name}")]
        assert target and "api_mechanisms" in target[0], name


@pytest.mark.parametrize("lang", LANGS)
def test_metrics_link_to_the_data(lang, site, parsed):
    page = f"{lang}/book/{lang}/metrics.html"
    links = [x for x in parsed[page].links if x.endswith(".csv")]
    assert any(x.endswith("data/metrics.csv") for x in links) and len(links) > 10
    for link in links:
        assert (site / page).parent.joinpath(link).resolve().is_file(), link


@pytest.mark.parametrize("lang", LANGS)
def test_every_chapter_says_how_long_it_ran(lang, site, parsed):
    for name in (n for n in parsed if n.startswith(f"{lang}/notebooks/")):
        text = (site / name).read_text("utf-8")
        line = re.search(r'<p class="dapo-facts">([^<]+)', text)
        assert line and re.search(r"\d+ (s|秒)", line[1]), name


@pytest.mark.parametrize("lang", LANGS)
def test_a_chapter_prints_without_the_furniture(lang, server, visit):
    visitor = visit(server)
    page = visitor.open(f"{lang}/{CHAPTER}")
    page.emulate_media(media="print")
    for hidden in (".bd-sidebar-primary", ".dapo-languages", ".dapo-widget"):
        assert page.locator(hidden).first.is_hidden(), hidden
    assert page.locator(".dapo-figure img:visible").count() > 0
    solution = page.locator(".cell.tag_solution pre").first
    assert solution.is_visible(), "solutions are printed"
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_size_budgets(site, parsed):
    total = sum(p.stat().st_size for p in site.rglob("*") if p.is_file())
    assert total <= 40e6
    for name in parsed:
        text = (site / name).read_text("utf-8")
        block = re.search(r'id="dapo-widgets">(.*?)</script>', text, re.S)
        assert block is None or len(block[1].encode()) <= 300_000, name


def test_downloads_are_in_the_readers_language(site):
    for lang, other in (("en", "zh"), ("zh", "en")):
        for kind in ("", ".clean"):
            path = site / lang / f"_sources/notebooks/03_clip_higher{kind}.ipynb"
            text = path.read_text("utf-8")
            assert f'lang = \\"{lang}\\"' in text and f"lang-{other}" not in text


@pytest.mark.parametrize("lang", LANGS)
def test_every_page_opens_without_a_network(lang, base, site, visit):
    visitor = visit(base, viewport=PHONE, color_scheme="dark")
    for name in pages(site, lang):
        page = visitor.open(name)
        widths = "[document.documentElement.scrollWidth, innerWidth]"
        scroll, inner = page.evaluate(widths)
        assert scroll <= inner, f"{name} scrolls sideways: {scroll} > {inner}"
        states = (
            "[...document.querySelectorAll('.dapo-widget')].map(d => d.dataset.state)"
        )
        assert set(page.evaluate(states)) <= {"ready"}, name
        assert page.locator("mjx-merror").count() == 0, name
    visitor.clean()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("lang", LANGS)
def test_text_is_legible(lang, scheme, server, site, visit):
    visitor = visit(server, color_scheme=scheme)
    for name in pages(site, lang):
        page = visitor.open(name)
        assert page.evaluate(CONTRAST) == [], f"{name} ({scheme}): contrast below 4.5"
        shown = page.locator(f".dapo-figure img.only-{scheme}").evaluate_all(
            "all => all.every((i) => getComputedStyle(i).display !== 'none')"
        )
        assert shown


def test_chinese_characters_are_not_boxes(base, visit):
    visitor = visit(base)
    for lang in LANGS:  # English pages name the other language
        page = visitor.open(f"{lang}/{CHAPTER}")
        page.evaluate("() => document.fonts.ready")
        assert page.evaluate(TOFU) == [], lang


@pytest.mark.parametrize("lang", LANGS)
def test_the_language_link_keeps_page_and_anchor(lang, base, site, visit):
    other = {"en": "zh", "zh": "en"}[lang]
    visitor = visit(base)
    for name in pages(site, lang):
        page = visitor.open(name)
        anchors = page.locator("article section[id]").evaluate_all(
            "all => all.map((s) => s.id)"
        )
        anchor = anchors[-1] if len(anchors) > 1 else ""
        page.evaluate("(a) => { location.hash = a }", anchor)
        link = page.locator(f"a[data-language={other}]")
        assert link.inner_text() == {"en": "English", "zh": "简体中文"}[other]
        link.click()
        page.wait_for_load_state()
        twin = name.replace(f"{lang}/", f"{other}/", 1)
        twin = twin.replace(f"book/{lang}/", f"book/{other}/")
        assert page.url.split("#")[0] == f"{base}/{twin}"
        if anchor:
            assert page.url.endswith(f"#{anchor}")
            assert page.locator(f"[id='{anchor}']").count() == 1


def test_the_entry_page_picks_the_readers_language(base, visit):
    for locale, lang in (("zh-CN", "zh"), ("en-GB", "en"), ("fr-FR", "en")):
        visitor = visit(base, locale=locale)
        visitor.page.goto(f"{base}/index.html")
        visitor.page.wait_for_url(f"**/{lang}/book/{lang}/index.html")


@pytest.mark.parametrize(
    ("lang", "query"),
    [
        ("zh", "裁剪"),
        ("zh", "重要性采样比"),
        ("zh", "eps_high"),
        ("en", "eps_high"),
        ("en", "clipping"),
    ],
)
def test_search_finds_the_chapter(lang, query, base, visit):
    visitor = visit(base)
    visitor.page.goto(f"{base}/{lang}/search.html?q={query}")
    result = visitor.page.locator("#search-results li a[href*='03_clip_higher']")
    result.first.wait_for(timeout=30_000)
    if base.startswith("http"):  # from disk, Sphinx may not read pages for summaries
        visitor.clean()
    assert visitor.outside == []


def drawn(widget) -> str:
    """The shapes of a widget, without its controls."""
    return widget.locator("svg").evaluate_all(
        "all => all.map((s) => s.outerHTML).join('')"
    )


@pytest.mark.parametrize("lang", LANGS)
def test_every_slider_moves_its_drawing_by_keyboard_and_by_drag(
    lang, base, site, visit
):
    visitor = visit(base)
    with_widgets = [
        name
        for name in pages(site, lang)
        if 'class="dapo-widget"' in (site / name).read_text("utf-8")
    ]
    assert f"{lang}/{CHAPTER}" in with_widgets
    moved = set()
    for name in with_widgets:
        page = visitor.open(name)
        for widget in page.locator(".dapo-widget").all():
            # the verifier's and the toggles' controls are not sliders
            assert widget.locator("input, select, textarea, button").count() > 0, name
            for slider in widget.locator("input[type=range]").all():
                if slider.is_visible() and slider.is_enabled():
                    operate(page, widget, slider, name)
                    moved.add(name)
    assert f"{lang}/{CHAPTER}" in moved and len(moved) >= 6
    visitor.clean()


def operate(page, widget, slider, name: str) -> None:
    """Move a slider both ways; the value and the widget must follow."""
    said = slider.get_attribute("aria-label") or slider.evaluate(
        "s => s.labels?.[0]?.textContent"
    )
    assert said, f"{name}: a slider without a label"
    slider.scroll_into_view_if_needed()
    before, text = slider.input_value(), widget.inner_html()
    slider.press("ArrowRight")
    if slider.input_value() == before:  # at its end
        slider.press("ArrowLeft")
    assert slider.input_value() != before, f"{name}: {said}: keyboard"
    assert widget.inner_html() != text, f"{name}: {said}: nothing followed the key"
    value, text = slider.input_value(), widget.inner_html()
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    low, high, at = slider.evaluate("s => [+s.min, +s.max, +s.value]")
    share = (at - low) / (high - low)
    goal = 0.85 if share < 0.5 else 0.15
    page.mouse.move(box["x"] + 8 + share * (box["width"] - 16), middle)
    page.mouse.down()
    page.mouse.move(box["x"] + goal * box["width"], middle, steps=4)
    page.mouse.up()
    assert slider.input_value() != value, f"{name}: {said}: drag"
    assert widget.inner_html() != text, f"{name}: {said}: nothing followed the drag"


def test_pages_work_without_javascript(server, site, visit):
    visitor = visit(server, java_script_enabled=False)
    visitor.page.goto(f"{server}/en/{CHAPTER}")
    assert visitor.page.locator(".dapo-figure img.only-light").count() > 0
