"""Configurations, languages, glossary, search and the npm lock."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from dapo_lib.errors import BadInput
from dapo_lib.publish import configs, fingerprint, glossary, languages, search
from dapo_lib.publish.layout import Layout

ROOT = Path(__file__).resolve().parents[2]


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
