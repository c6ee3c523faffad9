"""The cell that trains: its runs, Stop, failures, and its page without a kernel."""

from __future__ import annotations

import threading

import pytest
import torch

from dapo_lib import live
from dapo_lib.candidate.suites import rare_gold
from dapo_lib.train import Schedule


class Scripted(live.RunYourself):
    """Yields what a test says, and waits where it says."""

    script: tuple = ()

    def steps(self):
        """Numbers as they come; a callable is called, an exception raised."""
        for entry in self.script:
            if isinstance(entry, Exception):
                raise entry
            if callable(entry):
                entry()
                continue
            rollout, level = entry
            yield rollout, torch.tensor([level, level + 0.1])


def scripted(*script, **traits) -> Scripted:
    widget = Scripted(**traits)
    widget.script = script
    return widget


def test_a_run_is_the_suites_own(monkeypatch):
    fields = rare_gold.SCHEDULE.model_dump()
    short = Schedule(**{**fields, "rollouts": 4, "refresh_every": 2})
    monkeypatch.setattr(rare_gold, "SCHEDULE", short)
    mine = dict(live.retrain(0.2, 0.5, seeds=range(3)))
    arm = {"starts": (live.START,), "upper_clips": (0.5,)}
    frame = rare_gold.run(range(3), schedule=short, **arm)
    frame = frame[frame.metric == "p_gold"]
    assert list(mine) == [0, 1, 2, 3, 4]
    for rollout in (0, 2, 4):
        theirs = frame[frame.step == rollout].sort_values("seed").value.tolist()
        assert mine[rollout].tolist() == theirs
    assert mine[4].tolist() != mine[0].tolist()


def test_bounds_reach_the_algorithm(monkeypatch):
    short = Schedule(**{**rare_gold.SCHEDULE.model_dump(), "rollouts": 20})
    monkeypatch.setattr(rare_gold, "SCHEDULE", short)
    ends = [list(live.retrain(0.2, high, seeds=range(4)))[-1][1] for high in (0.1, 1.0)]
    assert ends[0].mean() < ends[1].mean()


def test_progress_curves_and_the_end():
    widget = scripted((0, 0.1), (80, 0.3), (160, 0.5))
    seen = []
    widget.observe(lambda change: seen.append(change.new), "done")
    widget.wanted += 1
    widget.wait()
    assert (widget.status, widget.done, seen) == ("done", 160, [80, 160])
    (run,) = widget.runs
    assert run["x"] == [0, 80, 160] and run["mean"] == [0.15, 0.35, 0.55]
    assert run["low"][0] < run["mean"][0] < run["high"][0]


def test_stop_keeps_what_was_trained():
    reached, go_on = threading.Event(), threading.Event()
    widget = scripted((0, 0.1), reached.set, lambda: go_on.wait(30), (1, 0.2), (2, 0.3))
    widget.wanted += 1
    assert reached.wait(30) and widget.status == "running"
    widget.wanted += 1  # a second press changes nothing while it runs
    widget.halted += 1
    go_on.set()
    widget.wait()
    assert widget.status == "stopped" and widget.runs[0]["x"] == [0, 1]
    widget.script = ((0, 0.1), (1, 0.2))
    widget.wanted += 1
    widget.wait()
    assert widget.status == "done" and len(widget.runs) == 2


def test_a_failure_is_told_and_the_next_run_works():
    widget = scripted((0, 0.1), ValueError("lr: got 0"))
    widget.wanted += 1
    widget.wait()
    assert (widget.status, widget.message) == ("failed", "ValueError: lr: got 0")
    widget.script = ((0, 0.1),)
    widget.wanted += 1
    widget.wait()
    assert widget.status == "done" and widget.message == ""


def test_only_the_last_runs_are_kept():
    widget = scripted((0, 0.1))
    for _ in range(live.KEPT + 2):
        widget.wanted += 1
        widget.wait()
    assert len(widget.runs) == live.KEPT


def test_bounds_out_of_range_are_refused():
    from traitlets import TraitError

    with pytest.raises(TraitError):
        live.RunYourself(eps_low=1.5)


@pytest.mark.parametrize(
    ("lang", "words"), [("en", "needs a running kernel"), ("zh", "正在运行的内核")]
)
def test_without_a_kernel_it_says_so(lang, words, open_page, block_of):
    page = open_page(block_of([live.RunYourself(lang)]), lang=lang)
    assert words in page.inner_text(".dw-summary")
    assert page.locator("[data-name=run]").is_disabled()
    assert page.locator("[data-name=stop]").is_disabled()


def test_with_an_answer_it_runs(open_page, block_of):
    """The page's half of the protocol, the kernel's played by the test."""
    probe = """
    const inner = widget;
    export default { render(view) {
      window.model = view.model;
      return inner.render(view);
    } };"""
    block = block_of([live.RunYourself()])
    entry = block["classes"]["RunYourself"]
    entry["esm"] = entry["esm"].replace("export default", "const widget =") + probe
    page = open_page(block)
    page.evaluate("model.set('pong', model.get('ping'))")
    assert page.locator("[data-name=run]").is_enabled()
    page.click("[data-name=run]")
    assert page.evaluate("model.get('wanted')") == 1
    run = {"x": [0, 80], "mean": [0.1, 0.3], "low": [0, 0.2], "high": [0.2, 0.4]}
    page.evaluate("r => model.set({ status: 'running', done: 80, runs: [r] })", run)
    assert page.locator("progress").evaluate("p => p.value") == 0.5
    assert page.locator("path.line").count() == 1
    page.click("[data-name=stop]")
    assert page.evaluate("model.get('halted')") == 1
    page.evaluate("model.set({ status: 'stopped' })")
    assert "80 of 160" in page.inner_text(".dw-summary")
    page.evaluate("model.set({ status: 'done' })")
    assert "30.0%" in page.inner_text(".dw-summary")
    page.evaluate("model.set({ status: 'failed', message: '<img src=x>' })")
    assert "<img src=x>" in page.inner_text(".dw-summary")
    page.evaluate("model.set({ runs: [null, 7, { x: 'a' }], done: NaN })")
    assert page.locator("path.line").count() == 0


def test_words_exist_in_both_languages():
    for lang in ("en", "zh"):
        words = live.RunYourself(lang).texts
        assert {"title", "lead", "run", "stop", *live.STATES} <= set(words)
