"""What an algorithm is: the four mechanisms and the conventions, as plain settings.

Left out: anything about data, model or optimiser; see experiments/config.py.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from dapo_lib.advantage import Baseline, Scale
from dapo_lib.objective import Reduction
from dapo_lib.sampling import OnExhausted, Surplus

Overlong = Literal["none", "soft", "filter", "linear"]


class Algorithm(BaseModel):
    """A policy-gradient algorithm; every mechanism is switched by its own field.

    Defaults are DAPO's. Lengths are in tokens, `l_max` comes from the setting.

    >>> Algorithm().eps_high, ALGORITHMS["grpo"].eps_high
    (0.28, 0.2)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    scale: Scale = "group"
    baseline: Baseline = "mean"
    ddof: Literal[0, 1] = 1
    advantage_eps: float = Field(1e-6, ge=0)
    eps_low: float = Field(0.2, ge=0, le=1)
    eps_high: float = Field(0.28, ge=0)
    dual_clip: float | None = Field(None, gt=1)
    reduction: Reduction = "token_mean"
    dynamic_sampling: bool = True
    max_rounds: int = Field(10, ge=1)
    on_exhausted: OnExhausted = "partial"
    surplus: Surplus = "drop"
    oversample: float = Field(1.0, ge=1)
    overlong: Overlong = "soft"
    l_cache: int = Field(4, ge=0)
    overlong_baseline: Literal["include", "exclude"] = "include"
    kl_coef: float = Field(0.0, ge=0)


_PLAIN = dict(eps_high=0.2, dynamic_sampling=False, overlong="none")
ALGORITHMS: dict[str, Algorithm] = {
    "dapo": Algorithm(),
    "grpo": Algorithm(**_PLAIN, reduction="seq_mean"),
    "dr_grpo": Algorithm(**_PLAIN, scale="none", reduction="seq_sum_const"),
    "rloo": Algorithm(**_PLAIN, scale="none", baseline="leave_one_out"),
    "reinforce": Algorithm(**_PLAIN, scale="none", baseline="none"),
    "ppo": Algorithm(**_PLAIN, scale="batch", baseline="batch"),
}
