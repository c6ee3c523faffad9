"""A cell that trains again with the reader's clip bounds: progress, Stop, curves.

The one widget that needs a kernel; in the static page it says so and stays quiet. Left
out: any other experiment. `dapo train` and `dapo experiments` run those.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import traitlets

from dapo_lib.labels import Lang, label, table
from dapo_lib.widgets.base import DapoWidget, compact

START = 0.05  # probability of the right answer before training
KEPT = 5  # runs that stay in the plot
STATES = ("idle", "running", "stopped", "done", "failed")


def retrain(
    eps_low: float, eps_high: float, seeds: Sequence[int] = range(10)
) -> Iterator[tuple[int, Any]]:
    """Train the rare-gold suite's first start; yields (rollout, p_gold [S]) each time.

    The first item is rollout 0. A run equals the suite's own with the same bounds, bit
    for bit. Raises ``ValidationError`` on bounds that an algorithm cannot have.

    >>> rollout, p_gold = next(retrain(0.2, 0.28, seeds=[0]))
    >>> rollout, round(float(p_gold[0]), 3)
    (0, 0.05)
    """
    from dapo_lib.candidate.suites import rare_gold
    from dapo_lib.experiments.arms import changed
    from dapo_lib.train import train

    algorithm = changed(rare_gold.ALGORITHM, eps_low=eps_low, eps_high=eps_high)
    run = rare_gold.begin(seeds, START, algorithm, rare_gold.SCHEDULE)
    yield 0, run.p_gold()
    for step in train(algorithm, rare_gold.SCHEDULE, *run):
        yield step.rollout, run.p_gold()


class RunYourself(DapoWidget):
    """Two sliders, Run, Stop, a progress bar, and the curves of the last runs.

    The page counts `wanted` and `halted` up; a thread trains and reports in `status`,
    `done` and `runs`. `ping` and `pong` tell the page whether anybody listens.

    >>> RunYourself("zh").describe()[:8]
    '有正在运行的内核'
    """

    name = "run_yourself"
    eps_low = traitlets.Float(0.2, min=0.01, max=0.99).tag(sync=True)
    eps_high = traitlets.Float(0.28, min=0.01, max=2.0).tag(sync=True)
    wanted = traitlets.Int(0).tag(sync=True)
    halted = traitlets.Int(0).tag(sync=True)
    ping = traitlets.Int(0).tag(sync=True)
    pong = traitlets.Int(0).tag(sync=True)
    status = traitlets.Enum(STATES, default_value="idle").tag(sync=True)
    done = traitlets.Int(0).tag(sync=True)
    total = traitlets.Int(160).tag(sync=True)
    runs = traitlets.List().tag(sync=True)
    message = traitlets.Unicode("").tag(sync=True)

    def __init__(self, lang: Lang = "en", **traits: Any) -> None:
        super().__init__(lang, **traits)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def texts_in(self, lang: Lang) -> dict[str, str]:
        """The words of labels/live.yml."""
        own = [key for key in table() if key.startswith("live.")]
        return {key.removeprefix("live."): table()[key][lang] for key in own}

    def describe(self, lang: Lang | None = None) -> str:
        """What it would do in Jupyter, in a sentence."""
        return label("live.describe", lang or self.lang)

    def steps(self) -> Iterator[tuple[int, Any]]:
        """The training that Run starts; yields after every rollout."""
        return retrain(self.eps_low, self.eps_high)

    def wait(self) -> None:
        """Until the run that is under way has ended."""
        if self._thread is not None:
            self._thread.join()

    @traitlets.observe("ping")
    def _answer(self, change: dict) -> None:
        self.pong = change["new"]

    @traitlets.observe("halted")
    def _halt(self, change: dict) -> None:
        self._stop.set()

    @traitlets.observe("wanted")
    def _start(self, change: dict) -> None:
        if self._thread is not None and self._thread.is_alive():
            return
        self._stop.clear()
        self.done, self.message, self.status = 0, "", "running"
        self._thread = threading.Thread(target=self._train, daemon=True)
        self._thread.start()

    def _train(self) -> None:
        """In the thread: whatever happens, the page learns how it ended."""
        earlier = list(self.runs)[-(KEPT - 1) :]
        run = {"eps_low": self.eps_low, "eps_high": self.eps_high}
        run |= {key: [] for key in ("x", "mean", "low", "high")}
        try:
            for rollout, values in self.steps():
                self._add(run, rollout, values)
                self.runs = [*earlier, compact(run)]
                self.done = rollout
                if self._stop.is_set():
                    self.status = "stopped"
                    return
            self.status = "done"
        except Exception as error:
            self.message = f"{type(error).__name__}: {error}"
            self.status = "failed"

    @staticmethod
    def _add(run: dict[str, Any], rollout: int, values: Any) -> None:
        from dapo_lib.experiments.statistics import mean_interval

        found = mean_interval(values.tolist())
        for key, value in zip(
            ("x", "mean", "low", "high"),
            (rollout, found.mean, found.low, found.high),
            strict=True,
        ):
            run[key].append(value)
