"""The host script: events, links, errors, and state that was tampered with."""

from __future__ import annotations

import pytest

from dapo_lib.widgets.base import asset

PROBE = """
export default {
  initialize({ model }) { (window.made ??= []).push(model.get("id")); },
  render({ model, el }) {
    window.models = { ...window.models, [model.get("id")]: model };
    el.textContent = `hello ${model.get("lang")}`;
  },
};
"""


def probes(*states: dict, links=(), esm: str = PROBE) -> dict:
    models = {
        f"w{i}": {"class": "Probe", "state": {"id": i, **state}}
        for i, state in enumerate(states, 1)
    }
    return {
        "models": models,
        "links": list(links),
        "classes": {"Probe": {"esm": esm, "css": ".probe { color: red; }"}},
    }


def test_it_is_small() -> None:
    assert len(asset("host.js").encode()) < 6_000


def test_events_come_in_order_and_only_on_a_real_change(open_page) -> None:
    page = open_page(probes({"x": 1, "data": {"a": [1, 2]}}))
    log = page.evaluate("""() => {
      const m = window.models[1];
      const log = [];
      const heard = (_, value) => log.push(['x', value, m.get('x')]);
      m.on('change:x', heard);
      m.on('change', () => log.push(['any']));
      m.set('x', 1); m.set('data', { a: [1, 2] });
      m.set('x', 2); m.save_changes();
      m.set({ x: 3, data: { a: [1] } });
      m.off('change:x', heard);
      m.set('x', 4);
      m.off();
      m.set('x', 5);
      return log;
    }""")
    assert log == [["x", 2, 2], ["any"], ["x", 3, 3], ["any"], ["any"]]
    assert page.inner_text(".dapo-widget") == "hello en"


@pytest.mark.parametrize("two_way", [True, False])
def test_links_carry_values_and_do_not_loop(open_page, two_way: bool) -> None:
    link = {"source": ["w1", "x"], "target": ["w2", "y"], "two_way": two_way}
    page = open_page(probes({"x": 1}, {"y": 9}, links=[link]))
    seen = page.evaluate("""() => {
      const [a, b] = [window.models[1], window.models[2]];
      const seen = [b.get('y')];
      a.set('x', 2); seen.push(b.get('y'));
      b.set('y', 7); seen.push(a.get('x'));
      return seen;
    }""")
    assert seen == [1, 2, 7 if two_way else 2]


def test_one_model_in_two_places_is_initialised_once(open_page) -> None:
    page = open_page(probes({}), ids=["w1", "w1"])
    assert page.evaluate("window.made") == [1]
    styles = page.eval_on_selector_all("style", "all => all.map(s => s.textContent)")
    assert styles == [".probe { color: red; }"]


def test_the_language_of_the_page_wins(open_page) -> None:
    page = open_page(probes({"lang": "en"}), lang="zh")
    assert page.inner_text(".dapo-widget") == "hello zh"


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (
            probes(
                {}, esm="export default { render() { throw new Error('no luck') } }"
            ),
            "no luck",
        ),
        (probes({}, esm="this is not a module"), "could not start"),
        ({"models": {}, "links": [], "classes": {}}, "no state for w1"),
        (
            {"models": {"w1": {"class": "toString"}}, "classes": {}},
            "no module for toString",
        ),
        ({"models": None, "links": None}, "no state for w1"),
        ({"models": {"w1": {}}, "links": [{}]}, "could not start"),
    ],
)
def test_what_cannot_start_says_so(open_page, block: dict, said: str) -> None:
    page = open_page(block, ids=["w1"])
    assert page.get_attribute(".dapo-widget", "data-state") == "error"
    assert said in page.inner_text(".dapo-widget [role=alert]")


TAMPERED = (
    {"eps_low": -5, "eps_high": 1e300, "ratio": "2; alert(1)", "p_rare": None},
    {"eps_low": "<img src=x onerror=alert(1)>", "lang": "<script>", "texts": 7},
    {"eps_low": {"toString": "x"}, "ratio": [1, 2], "p_rare": True, "texts": None},
)


@pytest.mark.parametrize("state", TAMPERED)
def test_tampered_numbers_are_clamped(open_page, samples, block_of, state) -> None:
    block = block_of([samples.make("epsilon")])
    block["models"]["w1"]["state"] |= state
    page = open_page(block)
    assert page.get_attribute(".dapo-widget", "data-state") == "ready"
    assert page.complaints == []
    assert "NaN" not in page.inner_html(".dapo-widget")
    page.locator("input[type=range]").first.press("ArrowRight")
    assert page.complaints == []


def test_markup_in_data_stays_text(open_page, samples, block_of) -> None:
    bad = (
        '<img src=x onerror="window.hacked=1"></script><script>window.hacked=1</script>'
    )
    block = block_of([samples.make(n) for n in ("epsilon", "trap", "leak", "verifier")])
    for model in block["models"].values():
        state = model["state"]
        state["texts"] = {key: bad for key in state["texts"]}
        state["response"] = state["reference"] = bad
    block["models"]["w1"]["state"]["grid"]["x_label"] = {"en": bad, "zh": bad}
    block["models"]["w2"]["state"]["traps"][0]["title"] = bad
    page = open_page(block)
    assert page.evaluate("window.hacked") is None
    assert page.locator(".dapo-widget img").count() == 0
    assert page.locator(".dapo-widget script").count() == 0


@pytest.mark.parametrize("name", ["mechanisms", "leak"])
def test_data_that_are_missing_are_named(open_page, samples, block_of, name) -> None:
    block = block_of([samples.make(name)])
    block["models"]["w1"]["state"]["runs"] = {}
    page = open_page(block)
    assert page.get_attribute(".dapo-widget", "data-state") == "error"
    assert "runs: no data" in page.inner_text(".dapo-widget")
