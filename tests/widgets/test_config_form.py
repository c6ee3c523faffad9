"""The browser's three texts against the Python renderers, character by character."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from dapo_lib.engines import table
from dapo_lib.errors import BadInput
from dapo_lib.experiments.config import presets
from dapo_lib.objective import REDUCTIONS
from dapo_lib.widgets import ConfigForm
from dapo_lib.widgets.config_form import ENGINES, FIELDS, POWERS, form_data

STATE = ("preset", *FIELDS, *POWERS)


def state_of(form: ConfigForm) -> dict:
    return {name: getattr(form, name) for name in STATE}


def python_text(form: ConfigForm, engine: str) -> str | dict:
    try:
        return form.text(engine)
    except BadInput as error:
        return {"error": str(error)}


def stored() -> dict:
    """The data as a notebook keeps it: every key sorted, orders in lists survive."""
    return json.loads(json.dumps(form_data(), sort_keys=True))


MODELS = ("Qwen/Qwen2.5-32B", "none", "1e5", "models/a b", "it's", 'a"b', "模型", "$H")


def forms(n: int) -> Iterator[ConfigForm]:
    """Every setting at random, far beyond what makes sense."""
    rng = random.Random(11)
    for _ in range(n):
        yield ConfigForm(
            preset=rng.choice(presets()),
            eps_low=rng.randrange(101) / 100,
            eps_high=rng.choice((rng.randrange(101) / 100, 10 ** rng.uniform(-7, 0))),
            log2_prompts=rng.randrange(13),
            log2_group=rng.randrange(1, 9),
            log2_minibatches=rng.randrange(9),
            l_max=rng.randrange(1, 40960),
            l_cache=rng.randrange(40960),
            dynamic=rng.random() < 0.5,
            reduction=rng.choice(REDUCTIONS),
            overlong=rng.choice(("none", "soft", "filter", "linear")),
            model=rng.choice(MODELS),
        )


def test_every_text_is_the_python_renderers_s(node) -> None:
    data = stored()
    pairs = [(form, engine) for form in forms(200) for engine in ENGINES]
    calls = [[engine, state_of(form)] for form, engine in pairs]
    got = node("config_form", [["textsOf", [calls, data]]])[0]
    texts = 0
    for (form, engine), mine in zip(pairs, got, strict=True):
        right = python_text(form, engine)
        texts += isinstance(right, str)
        assert mine == right, (engine, state_of(form))
    assert texts > 300  # most can be rendered; the others name the same fault


def test_the_limits_are_the_map_s(node) -> None:
    data = stored()
    forms = [
        ConfigForm(reduction=reduction, overlong=overlong, dynamic=dynamic)
        for reduction in REDUCTIONS
        for overlong in ("none", "soft", "filter", "linear")
        for dynamic in (True, False)
    ]
    flats = node("config_form", [["filled", [state_of(f), data]] for f in forms])
    known = node("config_form", [["values", [flat, data["map"]]] for flat in flats])
    for engine in table.ENGINES:
        got = node("config_form", [["limits", [k, engine, data["map"]]] for k in known])
        for form, mine in zip(forms, got, strict=True):
            right = [x.id for x in table.limits(form.run(), engine)]
            assert [x["id"] for x in mine] == right, (engine, state_of(form))


def test_a_state_that_was_tampered_with_falls_back_to_the_preset(node) -> None:
    data = stored()
    odd = {
        "preset": "../../etc", "eps_low": "NaN", "eps_high": 1e9, "l_max": None,
        "log2_group": -3, "reduction": "<script>", "dynamic": "yes", "model": "a\nb",
    }  # fmt: skip
    flat = node("config_form", [["filled", [odd, data]]])[0]
    base = dict(data["presets"][0][1])
    changed = {k: v for k, v in flat.items() if v != base[k]}
    assert changed == {"algorithm.eps_high": 1, "schedule.group_size": 2}


def test_the_form_in_python_gives_the_run_and_its_losses() -> None:
    form = ConfigForm(preset="one-gpu", l_max=512, l_cache=9999, overlong="soft")
    assert form.run().algorithm.l_cache == 512  # the page shows it clamped as well
    assert form.run().name == "one-gpu" and form.lost("trl") == []
    assert "clip_ratio_high=0.28" in form.text("verl")
    zh = ConfigForm("zh").texts
    assert zh["limit_filter_by_ours"].startswith("自身没有动态采样")
