"""Both tasks against scalar oracles that read the text."""

import math
import re

import pytest
import torch

from dapo_lib.errors import BadInput
from dapo_lib.lm.tasks import (
    AllowedLetter,
    CoinFlip,
    DigitSum,
    LookupLetter,
    Vocabulary,
    task_named,
)
from dapo_lib.rollout import Rollout

TRIPLES = [(a, b, c) for a in range(5) for b in range(5) for c in range(5)]


def rollout(task, texts, index=None):
    """Responses given as text, as if they had been sampled."""
    v, n = task.vocabulary, len(texts)
    width = max(map(len, texts))
    tokens = torch.tensor([v.encode(t) + [v.pad_id] * (width - len(t)) for t in texts])
    length = torch.tensor([len(t) for t in texts])
    mask = torch.arange(width) < length[:, None]
    cut = torch.tensor([not t.endswith(v.eos) for t in texts])
    zero = torch.zeros(n, dtype=torch.long)
    index = zero if index is None else index
    return Rollout(index, zero, zero, tokens, mask, length, cut, mask * -1.0)


def digit_sum_is_right(prompt: str, response: str) -> bool:
    wanted = sum(map(int, re.findall(r"\d", prompt))) % 10
    ends = re.fullmatch(rf"[^#]*#{wanted}\$", response)
    return ends is not None


def letter_is_right(prompt: str, response: str) -> bool:
    s = sum(map(int, prompt[:4]))
    allowed = "".join("vwxyz"[(s + i) % 5] for i in range(3))
    return re.fullmatch(rf".*[{allowed}]\$", response) is not None


@pytest.mark.parametrize(
    ("task", "oracle", "symbols"),
    [
        (DigitSum(3), digit_sum_is_right, "0123456789,;#~"),
        (AllowedLetter(3), letter_is_right, "01vwxyzJA"),
    ],
)
def test_grades_equal_the_oracle_on_random_text(task, oracle, symbols):
    g = torch.Generator().manual_seed(0)
    texts, prompts = [], []
    for i in range(600):
        n = int(torch.randint(0, 5, (), generator=g))
        picks = torch.randint(len(symbols), (n,), generator=g)
        body = "".join(symbols[int(p)] for p in picks)
        tail = ["#1$", "#4$", "v$", "x$", "$", "9"][i % 6]
        known = all(c in task.vocabulary.symbols for c in tail)
        texts.append(body + (tail if known else "$"))
        prompts.append(task.vocabulary.decode(task.prompts[i]))
    graded = task.grade(rollout(task, texts, torch.arange(600)))
    said = [oracle(p, t) for p, t in zip(prompts, texts, strict=True)]
    assert graded.correct.bool().tolist() == said
    assert 5 < sum(said) < 300
    assert torch.equal(graded.reward, 2.0 * graded.correct - 1)


@pytest.mark.parametrize("text", ["#4", "4$", "##4$", "#4#4$", "#$", "$", "#44$"])
def test_near_misses_of_the_chain_are_wrong(text):
    task = DigitSum(0)
    task.answers[:] = 4
    assert task.grade(rollout(task, [text])).correct.tolist() == [0]


def test_full_chains_are_right_and_have_2n_tokens():
    task = DigitSum(1)
    d = task.demonstrations(200, torch.Generator().manual_seed(0), rho=1, delta=0)
    v = task.vocabulary
    for prompt, tokens, length in zip(*d, strict=True):
        text, response = v.decode(prompt), v.decode(tokens[:length])
        digits = [int(c) for c in re.findall(r"\d", text)]
        sums = [sum(digits[: i + 1]) % 10 for i in range(1, len(digits))]
        assert [int(c) for c in re.findall(r"\d", response)] == [*sums, sums[-1]]
        assert length == 2 * len(digits) and digit_sum_is_right(text, response)
        assert text.startswith("+".join(map(str, digits)) + "=") and len(text) == 20


def test_rho_and_delta_are_the_chances_they_say():
    task, n = DigitSum(1, l_max=200), 6000
    g = torch.Generator().manual_seed(0)
    d = task.demonstrations(n, g, rho=0.25, delta=0.3)
    v = task.vocabulary
    texts = [v.decode(t[:k]) for t, k in zip(d.tokens, d.length, strict=True)]
    dither = [t.count("~") for t in texts if "~" in t]
    assert abs(len(dither) / n - 0.3) < 0.03
    assert abs(sum(dither) / len(dither) - 1 / 0.06) < 1.5
    direct = sum(re.match(r"~*#", t) is not None for t in texts) / n
    assert abs(direct - 0.75) < 0.03
    right = sum(
        digit_sum_is_right(v.decode(p), t)
        for p, t in zip(d.prompts, texts, strict=True)
    )
    assert abs(right / n - 0.133) < 0.02  # a guess is lucky one time in ten


def test_careful_and_habit_have_the_lengths_and_rates_they_say():
    task = AllowedLetter(0)
    g = torch.Generator().manual_seed(0)
    for careful, length, rate in ((1.0, 9, 1.0), (0.0, 3, 0.6)):
        d = task.demonstrations(3000, g, careful=careful)
        assert set(d.length.tolist()) == {length}
        sums = (d.prompts[:, :4]).sum(1) % 5
        right = task.is_right(task.answer(d.tokens, d.length), sums)
        assert abs(float(right.double().mean()) - rate) < 0.03


def test_an_answer_is_what_a_vote_counts():
    digits, letters = DigitSum(0), AllowedLetter(0)
    r = rollout(digits, ["3,6#6$", "#0$", "#6", "#4#4$", "#,$", "6$"])
    assert digits.answer(r.tokens, r.length).tolist() == [6, 0, -1, -1, -1, -1]
    r = rollout(letters, ["Jv$", "A1,1;1.z$", "Jx", "J0$", "JJ$"])
    assert letters.answer(r.tokens, r.length).tolist() == [0, 4, -1, -1, -1]


def test_a_looked_up_chain_has_no_shortcut_and_ends_where_it_says():
    task = LookupLetter(0)
    table, n = LookupLetter.TABLE, range(5)
    columns = [[row[j] for row in table] for j in n]
    assert all(sorted(line) == list(n) for line in (*table, *columns))
    assert any(table[a][b] != table[b][a] for a in n for b in n)
    grouped = [(table[table[a][b]][c], table[a][table[b][c]]) for a, b, c in TRIPLES]
    assert sum(left != right for left, right in grouped) > 60
    d = task.demonstrations(50, torch.Generator().manual_seed(0), careful=1.0)
    for prompt, tokens in zip(d.prompts.tolist(), d.tokens.tolist(), strict=True):
        number = prompt[0]
        for digit, said in zip(prompt[1:4], tokens[1:7:2], strict=True):
            number = table[number][digit]
            assert said == number
    right = task.is_right(task.answer(d.tokens, d.length), torch.tensor(number))
    assert bool(right[-1])


def test_the_table_is_fixed_by_the_seed_and_the_cursor_moves_on():
    a, b = DigitSum(5, size=10), DigitSum(5, size=10)
    assert torch.equal(a.prompts, b.prompts)
    first, second = a.draw(torch.tensor([7])), a.draw(torch.tensor([7]))
    assert second.index.tolist() == [7, 8, 9, 0, 1, 2, 3]
    assert second.group_id.tolist() == list(range(7, 14))
    b.load_state_dict(a.state_dict())
    assert b.draw(torch.tensor([1])).group_id.tolist() == [14]
    assert len(first) == 7


def test_coin_flips_are_fair_and_repeatable():
    task = CoinFlip(DigitSum(0))
    r = rollout(task, ["#1$"] * 4000)
    a, b = task.grade(r), task.grade(r)
    assert torch.equal(a.correct, b.correct)
    assert abs(float(a.correct.double().mean()) - 0.5) < 0.05


def test_behaviour_shares():
    task = DigitSum(0)
    task.prompts[0] = torch.tensor(task.vocabulary.encode("1+2+3=" + "_" * 14))
    r = rollout(task, ["3,6#6$", "~~#6$", "3~#6$", "3;6~#6$"])
    assert task.behaviour(r) == {"dither": 0.75, "full_chain": 0.5}
    letters = AllowedLetter(0)
    shares = letters.behaviour(rollout(letters, ["Jv$", "A1,1;1.v$"]))
    assert shares["careful"] == 0.5 and "careful_right" not in shares
    letters.answers[0] = 0
    r = rollout(letters, ["Jv$", "A1,1;1.v$", "B1,1;1.y$", "A"])
    assert letters.behaviour(letters.grade(r))["careful_right"] == 1 / 3
    r = letters.grade(rollout(letters, ["Jv$"]))
    assert math.isnan(letters.behaviour(r)["careful_right"])


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: Vocabulary("01_"), "eos"),
        (lambda: Vocabulary("01$", pad="$"), "pad"),
        (lambda: Vocabulary("011$_"), "symbols"),
        (lambda: DigitSum(0, l_max=2), "l_max: got 2, expected at least 3"),
        (lambda: AllowedLetter(0, l_max=1), "l_max"),
        (lambda: task_named("chess"), "task"),
        (lambda: DigitSum(0).demonstrations(1, None, rho=2, delta=0), "rho"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(build, said):
    with pytest.raises(BadInput, match=said) as caught:
        build()
    assert "\n" not in str(caught.value)
