"""Our own problems: every answer recomputed, both languages alike, none twice."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest

from dapo_lib.data import embedded
from dapo_lib.data.arithmetic import holds
from dapo_lib.data.gsm8k import resolve_data
from dapo_lib.errors import BadInput

NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
SHA256_TRAIN_EN = "ecae38c13821e7a3080469be001f0fd4d0e84ae5d1ab0b32b08c75c5316f8718"


@pytest.fixture(scope="module", params=["en", "zh"])
def data(request):
    return embedded.load_embedded(request.param)


def test_there_are_two_thousand_of_at_least_forty_kinds(data):
    assert (len(data.train), len(data.test)) == (1600, 400)
    kinds = Counter(i.template.name for i in embedded.instances())
    assert len(kinds) >= 40 and max(kinds.values()) - min(kinds.values()) <= 1


def test_every_answer_is_what_its_annotations_say(data):
    for p in data.train + data.test:
        assert p.annotations and all(holds(*pair) for pair in p.annotations)
        assert Fraction(p.annotations[-1][1]) == p.answer > 0
        shown = re.findall(r"(\S+) = <<(\S+)=(\S+)>>(\S+)", p.solution)
        assert [(lhs, rhs) for lhs, _, rhs, _ in shown] == list(p.annotations)
        assert all(a == b and c == d.rstrip(".。") for a, b, c, d in shown)


def test_a_number_of_a_derivation_comes_from_the_question_or_a_step(data):
    """So that no step reads a number out of thin air; small constants are free."""
    free = {"1", "2", "3", "4", "10", "100"}  # half, twice, breaks between, percent
    for p in data.train + data.test:
        known = set(NUMBER.findall(p.question)) | free
        for lhs, rhs in p.annotations:
            assert set(NUMBER.findall(lhs)) <= known, p.question
            known.add(rhs)


def test_one_to_six_steps_and_some_decimals(data):
    steps = {len(p.annotations) for p in data.train}
    assert steps == {1, 2, 3, 4, 5, 6}
    fractional = sum(p.answer.denominator > 1 for p in data.train)
    assert 0 < fractional < len(data.train) / 10


def test_no_problem_twice_even_with_other_names(data):
    lang = "zh" if "zh" in data.source.name else "en"
    people = "|".join(n for role in embedded.names().values() for n in role[lang])
    bare = [re.sub(people, "X", p.question) for p in data.train + data.test]
    assert len(set(bare)) == len(bare)


def test_no_slot_is_left_open(data):
    text = "".join(p.question + p.solution for p in data.train)
    assert "{" not in text and "}" not in text


def test_both_languages_hold_the_same_numbers():
    en, zh = (embedded.load_embedded(lang) for lang in ("en", "zh"))
    for a, b in zip(en.train + en.test, zh.train + zh.test, strict=True):
        assert a.annotations == b.annotations and a.answer == b.answer
        en_numbers, zh_numbers = (NUMBER.findall(p.question) for p in (a, b))
        assert Counter(en_numbers) == Counter(zh_numbers)


def test_chinese_is_chinese_and_spaced():
    han, plain = "[\u4e00-\u9fff]", "[0-9A-Za-z]"
    for p in embedded.load_embedded("zh").train:
        assert not re.search(f"{han}{plain}|{plain}{han}", p.question), p.question
        assert not re.search("[,;?!]|[A-Za-z]", p.question), p.question
        assert p.question.endswith("？")


def test_english_has_no_chinese():
    text = "".join(p.question + p.solution for p in embedded.load_embedded("en").train)
    assert text.isascii()


def test_templates_use_all_their_numbers():
    for t in embedded.templates():
        used = set(re.findall(r"[a-z][0-9]*", " ".join(t.steps)))
        results = {f"r{n}" for n in range(1, len(t.steps))}
        assert used == set(t.draw) | (used & results), t.name
        for words in (t.en, t.zh):
            assert set(re.findall(r"\{([a-g])\}", words["question"])) == set(t.draw)
            assert len(words["steps"]) == len(t.steps)
            for number, line in enumerate(words["steps"], start=1):
                assert re.findall(r"\{s([0-9])\}", line) == [str(number)], t.name


def test_the_seed_decides_and_the_default_is_pinned():
    assert embedded.load_embedded().source.sha256["train"] == SHA256_TRAIN_EN
    other = embedded.load_embedded(seed=1).source.sha256["train"]
    assert other != SHA256_TRAIN_EN


def test_offline_without_data_takes_it_and_says_so(monkeypatch):
    monkeypatch.delenv("DAPO_DATA", raising=False)
    source = resolve_data(offline=True).source
    assert source.describe().startswith("embedded (en, seed 0): train 1600 problems")


def test_refusals():
    with pytest.raises(BadInput, match="lang"):
        embedded.load_embedded("fr")
    first = embedded.templates()[0]
    narrow = replace(first, draw={name: [2, 2] for name in first.draw})
    with pytest.raises(BadInput, match="widen its draw"):
        embedded._distinct(narrow, 2, random.Random(0))
