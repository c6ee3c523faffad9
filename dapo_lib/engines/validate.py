"""What an engine's own validation lets pass: types, typos under `+`, dead options.

verl's composition accepts `lr=fast` and `+reward.typo=1`; TRL's dataclass accepts any
type. Options that a run passes on by an engine's own names (`extra`) are checked here.
Left out: values. Whether a run is DAPO is check_config's judgement.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from dapo_lib.engines import render, table
from dapo_lib.engines.check_config import Report, check_config
from dapo_lib.engines.check_config.common import closest
from dapo_lib.engines.check_config.names import Names, from_table
from dapo_lib.errors import BadInput
from dapo_lib.experiments.config import Run

FREE = "reward.reward_kwargs."  # verl reads these without declaring them
FREE_KEYS = (
    "reward.reward_kwargs.max_resp_len",
    *(
        f"reward.reward_kwargs.overlong_buffer_cfg.{k}"
        for k in ("enable", "len", "log", "penalty_factor")
    ),
)


def validate(run: Run, engine: table.Engine) -> Report:
    """check_config's report on what would be exported, after every option is checked.

    Raises ``BadInput`` on an option that the engine does not have, whose type is
    another than its default's, or that does nothing.
    """
    names = from_table(engine)
    for key, value in run.extra.get(engine, {}).items():
        _known(key, engine, names)
        _typed(key, value, engine, names)
    text = render.render_trl(run) if engine == "trl" else render.render_verl(run)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("train.py" if engine == "trl" else "launch.sh")
        path.write_text(text, encoding="utf-8")
        report = check_config(path)
    for found in report.refused:
        raise BadInput(f"{engine} refuses {found.key}: {found.why}")
    for found in report.no_effect:
        raise BadInput(f"{engine}: {found.key} has no effect: {found.why}")
    return report


def _known(key: str, engine: table.Engine, names: Names) -> None:
    bare = key.lstrip("+~")
    where = f"extra.{engine}.{key}"
    if engine == "trl":
        if bare != key or key not in names.defaults:
            raise BadInput(f"{where}: no field of GRPOConfig{_hint(bare, names)}")
        return
    if bare.startswith(FREE):
        if bare not in FREE_KEYS:
            raise BadInput(f"{where}: never read by verl{_hint(bare, names)}")
        return
    if not names.knows(bare):
        raise BadInput(f"{where}: verl has no such option{_hint(bare, names)}")
    if key.startswith("+") and bare in names.defaults:
        raise BadInput(f"{where}: is there already; write it without +")


def _hint(key: str, names: Names) -> str:
    meant = closest(key, [*names.defaults, *FREE_KEYS])
    return f"; did you mean {meant}?" if meant else ""


def _typed(key: str, value: Any, engine: table.Engine, names: Names) -> None:
    default = names.defaults.get(key.lstrip("+~"))
    if value is None or default is None or isinstance(default, dict):
        return
    if isinstance(default, str) and ("${" in default or default in ("...", "???")):
        return
    kinds = {bool: bool, int: int, float: (int, float), str: str}
    wanted = kinds[type(default)]
    # verl's whole numbers may be fractions elsewhere (top_p has the default 1)
    if wanted is int and not isinstance(default, bool):
        wanted = (int, float)
    fits = isinstance(value, wanted) and isinstance(value, bool) == (wanted is bool)
    if not fits:
        raise BadInput(
            f"extra.{engine}.{key}: got {value!r}, expected a "
            f"{type(default).__name__} as its default {default!r}"
        )
