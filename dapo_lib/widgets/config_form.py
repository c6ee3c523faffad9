"""Fill in a run and get it as our configuration, verl's script or TRL's (chapter 10).

The map, the templates and the presets travel as data, so that the page renders what
`dapo export` writes. Left out: files other than the main one, and an engine's `extra`.
"""

from __future__ import annotations

from typing import Any, get_args

import traitlets

from dapo_lib.algorithm import Overlong
from dapo_lib.engines import render, table
from dapo_lib.experiments.config import Run, load_run, presets
from dapo_lib.labels import Lang, label
from dapo_lib.objective import REDUCTIONS
from dapo_lib.widgets.base import DapoWidget

FIRST = "dapo-32b"
ENGINES = ("ours", *table.ENGINES)
RENDER = {"ours": render.render_ours, "verl": render.render_verl}
RENDER["trl"] = render.render_trl
# the form's names for our settings; powers of two are set by their exponent
POWERS = {
    "log2_prompts": "schedule.prompts_per_rollout",
    "log2_group": "schedule.group_size",
    "log2_minibatches": "schedule.minibatches",
}
FIELDS = {
    "eps_low": "algorithm.eps_low",
    "eps_high": "algorithm.eps_high",
    "l_max": "schedule.l_max",
    "l_cache": "algorithm.l_cache",
    "dynamic": "algorithm.dynamic_sampling",
    "reduction": "algorithm.reduction",
    "overlong": "algorithm.overlong",
    "model": "model.path",
}


def form_data() -> dict[str, Any]:
    """What the page needs to render: the map, two templates, and the presets, flat.

    A notebook is stored with its keys sorted, so what has an order is a list of pairs.
    The presets after the first are what differs from it.
    """
    names = sorted(presets(), key=lambda name: (name != FIRST, name))
    flat = {name: load_run(name).flat() for name in names}
    first = flat[FIRST]
    less = [
        [name, [[k, v] for k, v in own.items() if name == FIRST or v != first[k]]]
        for name, own in flat.items()
    ]
    whole = table.table()
    rows = [{k: v for k, v in r.items() if k != "part"} for r in whole["rows"]]
    derived = [[name, rule] for name, rule in whole["derived"].items()]
    return {
        "map": {**whole, "rows": rows, "derived": derived},
        "templates": {name: render.template(name) for name in table.ENGINES},
        "presets": less,
        "sampling": list(render.SAMPLING),
    }


class ConfigForm(DapoWidget):
    """A form for a run; in Python, `run()` is the configuration and `text()` a script.

    `log2_prompts`, `log2_group` and `log2_minibatches` are exponents of two. Raises
    ``TraitError`` on a value out of range.

    >>> form = ConfigForm(eps_high=0.3, log2_group=3)
    >>> form.run().algorithm.eps_high, form.run().schedule.group_size
    (0.3, 8)
    >>> [limit.id for limit in ConfigForm(overlong="filter").lost("verl")]
    ['overlong_filter']
    """

    name = "config_form"
    preset = traitlets.Unicode(FIRST).tag(sync=True)
    model = traitlets.Unicode("Qwen/Qwen2.5-32B").tag(sync=True)
    eps_low = traitlets.Float(0.2, min=0, max=1).tag(sync=True)
    eps_high = traitlets.Float(0.28, min=0, max=1).tag(sync=True)
    log2_prompts = traitlets.Int(9, min=0, max=12).tag(sync=True)
    log2_group = traitlets.Int(4, min=1, max=8).tag(sync=True)
    log2_minibatches = traitlets.Int(4, min=0, max=8).tag(sync=True)
    l_max = traitlets.Int(20480, min=1, max=1 << 20).tag(sync=True)
    l_cache = traitlets.Int(4096, min=0, max=1 << 20).tag(sync=True)
    dynamic = traitlets.Bool(True).tag(sync=True)
    reduction = traitlets.Enum(REDUCTIONS, "token_mean").tag(sync=True)
    overlong = traitlets.Enum(get_args(Overlong), "soft").tag(sync=True)
    engine = traitlets.Enum(ENGINES, "verl").tag(sync=True)
    copies = traitlets.Int(0, min=0).tag(sync=True)
    data = traitlets.Dict().tag(sync=True)

    def __init__(self, lang: Lang = "en", **traits: Any) -> None:
        super().__init__(lang, **{"data": form_data(), **traits})

    def texts_in(self, lang: Lang) -> dict[str, str]:
        """The form's words, and those for what an engine cannot do."""
        limits = {x["id"] for x in table.table()["limits"]}
        words = {f"limit_{i}": label(f"engines.limit_{i}", lang) for i in limits}
        return super().texts_in(lang) | dict(sorted(words.items()))

    def run(self) -> Run:
        """The configuration as filled in. Raises ``BadInput`` on one that cannot be."""
        changes = [f"{key}={self._plain(name)}" for name, key in FIELDS.items()]
        changes += [f"{key}={2 ** getattr(self, n)}" for n, key in POWERS.items()]
        return load_run(self.preset, changes)

    def _plain(self, name: str) -> str:
        value = getattr(self, name)
        return render.yaml_text(min(value, self.l_max) if name == "l_cache" else value)

    def text(self, engine: str | None = None) -> str:
        """The configuration for an engine: ours, verl or trl."""
        return RENDER[engine or self.engine](self.run())

    def lost(self, engine: table.Engine) -> list[table.Limit]:
        """The mechanisms that an engine cannot express as filled in."""
        return [x for x in table.limits(self.run(), engine) if x.level == "lost"]

    def describe(self, lang: Lang | None = None) -> str:
        """How the same three settings are called in each engine."""
        run = self.run()
        upper = {
            engine: next(
                f"`{o.key.rpartition('.')[2]}={table.number(o.value)}`"
                for o in table.options(run, engine)
                if o.ours == "algorithm.eps_high"
            )
            for engine in table.ENGINES
        }
        ours = f"`eps_high: {table.number(run.algorithm.eps_high)}`"
        return self.words("describe", lang, ours=ours, **upper)
