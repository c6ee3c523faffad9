"""Configurations, languages, glossary, search and the npm lock."""

from __future__ import annotations

import base64
import io
import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from dapo_lib.errors import BadInput
from dapo_lib.publish import (
    around,
    card,
    chapter,
    configs,
    fingerprint,
    glossary,
    home,
    languages,
    search,
)
from dapo_lib.publish.layout import Layout

ROOT = Path(__file__).resolve().parents[2]
SUM_OF_A = "qVpDBgj7bpq5hMAcGp3AOc79J3Y1Z4HvySTwKrWDoy4="


def test_the_chinese_configuration_comes_from_the_english_one(layout):
    config, toc = configs.prepare(layout, "zh")
    made = yaml.safe_load(config.read_text("utf-8"))
    base = yaml.safe_load((layout.root / "_config.yml").read_text("utf-8"))
    assert made["sphinx"]["config"]["language"] == "zh_CN"
    assert made["parse"] == base["parse"] and made["title"] != base["title"]
    assert made["sphinx"]["local_extensions"] == {"dapo_book": "../book/_ext"}
    contents = toc.read_text("utf-8")
    assert "book/zh/index" in contents and "book/en" not in contents
    assert configs.prepare(layout, "en")[0] == layout.root / "_config.yml"


def test_a_caption_without_translation_stops():
    with pytest.raises(BadInput, match="no caption for 'Extra'"):
        configs.translate({"caption": "Extra"}, "zh", {})


def test_every_page_of_the_toc_exists_in_both_languages():
    toc = (ROOT / "_toc.yml").read_text("utf-8")
    for name in re.findall(r"(?:file|root): (\S+)", toc):
        for lang in ("en", "zh"):
            page = ROOT / name.replace("book/en/", f"book/{lang}/")
            assert (
                page.with_suffix(".md").exists() or page.with_suffix(".ipynb").exists()
            )


def test_language_links_point_at_the_same_page():
    links = languages.page_links("book/en/index", "en")
    addresses = {link["tag"]: link["href"] for link in links["language_links"]}
    assert addresses["zh-CN"] == "../../../zh/book/zh/index.html"
    assert 'hreflang="zh-CN"' in links["language_metatags"]
    with pytest.raises(BadInput, match="language 'fr'"):
        languages.from_tag("fr")


def test_glossary_is_checked_and_found_in_any_form(layout):
    assert glossary.canonical(layout, "Clipping", "zh") == "裁剪"
    assert glossary.canonical(layout, "裁剪", "en") == "clipping"
    assert glossary.canonical(layout, "nothing", "en") is None
    path = layout.root / "book/glossary.yml"
    path.write_text("- {id: a, en: a, zh: 甲, def_en: x, df_zh: y}\n", encoding="utf-8")
    glossary.load.cache_clear()
    with pytest.raises(BadInput, match="entry 'a': keys"):
        glossary.load(layout)
    glossary.load.cache_clear()


def test_glossary_page_names_every_term_once():
    for lang in ("en", "zh"):
        lines = glossary.page(Layout(ROOT), lang)
        terms = [line for line in lines[1:-1] if line and not line.startswith("  ")]
        assert len(terms) == len(set(terms)) >= 140


def test_jieba_learns_the_terms(tmp_path):
    search.write_dictionary(glossary.load(Layout(ROOT)), tmp_path / "d.txt")
    words = (tmp_path / "d.txt").read_text("utf-8")
    assert "\n动态采样 1000000 n\n" in "\n" + words


NODE = """
const [file, terms, query] = process.argv.slice(1);
const box = { Search: { _index: { terms: JSON.parse(terms) } }, query };
const script = require("fs").readFileSync(file, "utf8");
require("vm").runInNewContext(script + ";out = splitQuery(query)", box);
console.log(JSON.stringify(box.out));
"""


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("动态采样", ["动态", "采样"]),
        ("裁剪 eps_high", ["裁剪", "eps_high"]),
        ("裁剪eps_high的作用", ["裁剪", "eps_high", "作用"]),
        ("没有的词", ["没有的词"]),
        ('<b>"', ["b"]),
    ],
)
def test_the_browser_cuts_chinese_queries_into_words_of_the_index(query, expected):
    from playwright._impl._driver import compute_driver_executable

    node = compute_driver_executable()[0]
    terms = {word: [0] for word in ("动态", "采样", "裁剪", "作用", "eps_high")}
    script = str(ROOT / "book/_static/split-query.js")
    command = [node, "-e", NODE, script, json.dumps(terms), query]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == expected


def test_the_lock_has_sums_and_no_addresses():
    lock = json.loads((ROOT / "package-lock.json").read_text("utf-8"))
    wanted = json.loads((ROOT / "package.json").read_text("utf-8"))["dependencies"]
    for name, version in wanted.items():
        entry = lock["packages"][f"node_modules/{name}"]
        assert entry["version"] == version and entry["integrity"].startswith("sha512-")
        assert "resolved" not in entry and not entry.get("hasInstallScript")


def test_the_fingerprint_follows_imports_and_nothing_else():
    files = {p.name for p in fingerprint.reachable(["from dapo_lib import kl"])}
    assert {"kl.py", "errors.py", "figures.yml"} <= files
    assert "pipeline.py" not in files and "cli" not in files


def test_only_addresses_of_github_bring_buttons(layout, monkeypatch):
    assert home.home(layout) == home.Home()
    monkeypatch.setenv("DAPO_REPOSITORY", "https://github.com/Me/the-book")
    place = home.home(layout)
    assert place.site == "https://me.github.io/the-book/"
    assert set(place.buttons("03_x", "en")) == {"Colab", "Binder"}
    monkeypatch.setenv("DAPO_REPOSITORY", "https://github.com/OWNER/NAME")
    assert home.home(layout).buttons("03_x", "en") == {}
    for bad in ("ftp://x", "https://github.com/a", 'https://github.com/a/b"onload=x'):
        monkeypatch.setenv("DAPO_REPOSITORY", bad)
        with pytest.raises(BadInput, match="dapo_repository"):
            home.home(layout)


def test_the_first_cell_installs_only_what_is_missing(layout, monkeypatch, capfd):
    path = layout.notebooks / "01_small.ipynb"
    before = chapter.clean(layout, path, "en")["cells"]
    monkeypatch.setenv("DAPO_REPOSITORY", "https://github.com/me/book")
    cells = chapter.clean(layout, path, "en")["cells"]
    assert len(cells) == len(before) + 1 and cells[0]["id"] == "install"
    code = "".join(cells[0]["source"])
    calls = []
    monkeypatch.setattr("subprocess.run", lambda *a, **k: calls.append(a[0]))
    exec(code, {})  # dapo_lib is here
    assert calls == []
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    exec(code, {})
    assert calls[0][-1] == "git+https://github.com/me/book"


def test_the_branch_of_the_buttons(layout, monkeypatch, tmp_path):
    out = tmp_path / "branch"
    with pytest.raises(BadInput, match="dapo_repository is not set"):
        chapter.write_branch(layout, out)
    monkeypatch.setenv("DAPO_REPOSITORY", "https://github.com/me/book")
    chapter.write_branch(layout, out)
    place = home.home(layout)
    for lang in ("en", "zh"):
        colab = place.buttons("01_small", lang)["Colab"]
        inner = colab.split(f"/blob/{home.BRANCH}/")[1]
        notebook = json.loads((out / inner).read_text("utf-8"))
        assert notebook["cells"][0]["id"] == "install"
    assert "git+https://github.com/me/book" in (out / "requirements.txt").read_text()
    with pytest.raises(BadInput, match="exists"):
        chapter.write_branch(layout, out)


def test_share_tags_are_absolute_where_the_site_is_known():
    words = ("notebooks/03_x", "zh", 'A "title"', "<b>")
    tags = around.share_tags(home.Home(), *words)
    assert 'content="../_static/card.png"' in tags and "og:url" not in tags
    assert "A &quot;title&quot;" in tags and "<b>" not in tags
    place = home.Home("me", "book", "https://me.github.io/book/")
    tags = around.share_tags(place, *words)
    assert 'content="https://me.github.io/book/zh/_static/card.png"' in tags
    assert 'content="https://me.github.io/book/zh/notebooks/03_x.html"' in tags


def test_facts_line_has_only_what_is_known():
    assert around.facts_line(home.Home(), "03_x", "en", "") == ""
    assert "12 s" in around.facts_line(home.Home(), "03_x", "en", "12")
    line = around.facts_line(home.Home("me", "book"), "03_x", "zh", "12")
    assert "colab.research.google.com" in line and "/zh/03_x.ipynb" in line


def test_sitemap_pairs_the_languages():
    from xml.etree import ElementTree

    place = home.Home("me", "book", "https://me.github.io/book/")
    pages = ["en/book/en/index.html", "zh/book/zh/index.html"]
    tree = ElementTree.fromstring(home.sitemap(place, pages).encode())
    assert len(tree) == 2
    hrefs = [link.get("href") for link in tree[0] if link.get("href")]
    assert hrefs == [f"https://me.github.io/book/{page}" for page in pages]


def test_big_script_is_kept_once(tmp_path):
    for lang in ("en", "zh"):
        page = tmp_path / lang / "book" / lang / "index.html"
        page.parent.mkdir(parents=True)
        page.write_text(f'<script src="../../_static/{around.SHARED}?v=1"></script>')
        (tmp_path / lang / "_static").mkdir()
        (tmp_path / lang / "_static" / around.SHARED).write_text("x")
    around.share_scripts(tmp_path, ("en", "zh"))
    assert [p.parent.name for p in tmp_path.rglob(around.SHARED)] == ["shared"]
    for page in tmp_path.rglob("index.html"):
        link = re.search(r'src="([^"?]+)', page.read_text())[1]
        assert (page.parent / link).resolve() == tmp_path / "shared" / around.SHARED


def test_the_card_is_the_same_bytes_each_time(tmp_path):
    for name in ("a.png", "b.png"):
        card.write(tmp_path / name, "en")
    data = (tmp_path / "a.png").read_bytes()
    assert data == (tmp_path / "b.png").read_bytes() and data[:4] == b"\x89PNG"
    assert int.from_bytes(data[16:20]) == 1200 and int.from_bytes(data[20:24]) == 630


def test_every_page_of_ours_outside_the_theme_has_the_policy():
    for text in (
        languages.seal(languages.ENTRY),
        languages.front_page("zh"),
        around.lost_page(home.Home()),
    ):
        policy = re.search(r'Policy" content="([^"]+)"', text)[1]
        assert "script-src 'self' blob:" in policy and "{policy}" not in text


def test_a_policy_names_the_scripts_of_its_page_and_no_data():
    data = '<script type="application/json">{}</script><script src="x.js"></script>'
    page = f"{languages.POLICY_TAG}<script>a()</script>{data}<script>b()</script>"
    sealed = languages.seal(page)
    assert sealed.count("'sha256-") == 2 and languages.seal(sealed) == sealed
    # the sum of "a()", from another program: printf 'a()' | openssl dgst -sha256
    assert "'sha256-" + SUM_OF_A in sealed


def test_seconds_of_a_page_come_from_beside_its_copy(layout):
    assert around.seconds(layout, "01_small", "en") == ""
    path = layout.executed("en") / "01_small.seconds"
    path.parent.mkdir(parents=True)
    path.write_text("12.34\n")
    assert around.seconds(layout, "01_small", "en") == "12"
    path.write_text("nonsense")
    assert around.seconds(layout, "01_small", "en") == ""


def test_downloads_carry_light_pictures(tmp_path):
    """A third of the bytes, white stays white, no pixel far off."""
    card.write(tmp_path / "card.png", "en")
    heavy = base64.b64encode((tmp_path / "card.png").read_bytes()).decode()
    light = chapter.light_png(heavy)
    assert len(light) < 0.6 * len(heavy)
    before, after = (
        np.asarray(Image.open(io.BytesIO(base64.b64decode(text))).convert("RGB"))
        for text in (heavy, light)
    )
    assert before.shape == after.shape and (after[0, 0] == 255).all()
    assert np.abs(before.astype(int) - after).mean() < 2
