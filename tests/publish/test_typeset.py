"""How a page is set: seams of Chinese text, formulas and commas, long names."""

from docutils import nodes
from hypothesis import given
from hypothesis import strategies as st

from dapo_lib.publish import typeset


def line(*parts: nodes.Node | str) -> nodes.paragraph:
    """A paragraph of texts and inline nodes."""
    made = [nodes.Text(p) if isinstance(p, str) else p for p in parts]
    return nodes.paragraph("", "", *made)


def closed(*parts: nodes.Node | str) -> str:
    """The text of a paragraph after its seams were closed."""
    block = line(*parts)
    typeset.close_up(nodes.section("", block))
    return block.astext()


def test_no_gap_between_chinese_words():
    link = nodes.reference("", "", nodes.inline("", "验证器"))
    assert closed("同一道题，", link, " 给每条 ") == "同一道题，验证器给每条 "
    assert closed("看 ", nodes.strong("", "对错"), " 吗") == "看对错吗"


def test_the_gap_beside_latin_and_code_stays():
    assert closed("就是 ", nodes.strong("", "GRPO"), " 加") == "就是 GRPO 加"
    assert closed("读 ", nodes.literal("", "答案"), " 里") == "读 答案 里"
    assert closed("乘 ", nodes.math("", "p"), " 倍") == "乘 p 倍"


def test_full_width_punctuation_has_no_gap_on_either_side():
    number = nodes.inline("", "+0.1（16 个种子）")
    assert closed("高 ", number, " nat") == "高 +0.1（16 个种子）nat"


def test_two_blocks_do_not_touch():
    cells = nodes.section("", line("一 "), line("二"))
    typeset.close_up(cells)
    assert [c.astext() for c in cells.children] == ["一 ", "二"]


@given(st.lists(st.text("组 a（，", max_size=4), max_size=6))
def test_closing_takes_spaces_and_nothing_else(texts):
    block = line(*(nodes.strong("", t) for t in texts))
    before = block.astext()
    typeset.close_up(block)
    assert block.astext().replace(" ", "") == before.replace(" ", "")
    once = block.astext()
    typeset.close_up(block)
    assert len(once) >= len(block.astext())


def test_a_formula_keeps_the_punctuation_beside_it():
    block = line("（", nodes.math("", "x"), "），", nodes.math("", "y"), " 再看")
    typeset.hold(block)
    kept = list(block.findall(nodes.inline))
    assert all(k["classes"] == [typeset.KEEP] for k in kept)
    assert [k.astext() for k in kept] == ["（x），"]
    assert block.astext() == "（x），y 再看"


def test_a_comma_between_two_formulas_stays_with_the_first():
    block = line(nodes.math("", "x"), "、", nodes.math("", "y"), "。")
    typeset.hold(block)
    assert [k.astext() for k in block.findall(nodes.inline)] == ["x、", "y。"]


def test_names_break_in_tables_only():
    name = '<span class="pre">dapo_lib.objective.divisor</span>'
    page = typeset.breakable(f"<p>{name}</p><table><td>{name}</td></table>")
    text, table = page.split("<table>")
    assert "<wbr>" not in text and table.count("<wbr>") == 3
    assert page.replace("<wbr>", "") == f"<p>{name}</p><table><td>{name}</td></table>"


def test_short_names_stay_whole():
    cell = '<table><span class="pre">group_size</span></table>'
    assert typeset.breakable(cell) == cell
