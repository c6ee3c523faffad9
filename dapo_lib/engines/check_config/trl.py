"""TRL: what the fields of a GRPOConfig come to, and which of them do nothing.

Facts of TRL 1.16.0, read in its code: `epsilon_high` unset means `epsilon`; `loss_type`
is `dapo` by default; a rollout serves `steps_per_generation / gradient_accumulation`
updates, times `num_iterations`; there is no dynamic sampling and no dual clip.
Left out: rewards. Whether correctness is kept apart from shaping is the code's.
"""

from __future__ import annotations

from typing import Any

from dapo_lib.engines.check_config import common
from dapo_lib.engines.check_config.names import Names
from dapo_lib.engines.check_config.report import Finding, Key, Report
from dapo_lib.engines.check_config.source import Source, Unknown

TOKEN_LEVEL = {
    "dapo": "mean over the tokens of the generation batch, all processes together",
    "bnpo": "mean over the tokens of each micro-batch, then over micro-batches",
}


class Run:
    """Effective values of a TRL run: the file over the defaults of the version."""

    def __init__(self, source: Source, names: Names) -> None:
        self.source, self.names = source, names

    def given(self, name: str) -> bool:
        """Whether the file sets the field."""
        return name in self.source.settings

    def get(self, name: str) -> Any:
        """The value of a field: given, else the default."""
        if self.given(name):
            return common.plain(self.source.settings[name].value)
        return self.names.defaults.get(name)


def check(source: Source, names: Names, report: Report) -> None:
    """Fill a report with the findings on a TRL configuration."""
    run = Run(source, names)
    report.findings += [
        _clip(run),
        _loss(run),
        _filter(run),
        _overlong(run),
        _kl(run),
        _advantage(run),
        _dual(run),
        _updates(run),
        common.sampling(
            run.get("temperature"), run.get("top_p"), ("temperature=1.0", "top_p=1.0")
        ),
    ]
    report.no_effect += _dead(run)
    _unknown_fields(source, names, report)


def _clip(run: Run) -> Finding:
    low, high = run.get("epsilon"), run.get("epsilon_high")
    change = [] if low == common.EPS_LOW else [f"epsilon={common.EPS_LOW}"]
    change.append(f"epsilon_high={common.EPS_HIGH}")
    return common.clip(low, low if high is None else high, tuple(change))


def _loss(run: Run) -> Finding:
    kind, level = run.get("loss_type"), run.get("importance_sampling_level")
    entropy, quantile = run.get("entropy_coef"), run.get("top_entropy_quantile")
    effective = {"loss_type": kind, "ratio": level, "entropy_coef": entropy}
    if hidden := common.unknown("token_level_loss", effective):
        return hidden
    change = []
    if kind not in TOKEN_LEVEL:
        change.append("loss_type='dapo'")
    if level != "token":
        change.append("importance_sampling_level='token'")
    if entropy or run.get("use_adaptive_entropy"):
        change += ["entropy_coef=0.0", "use_adaptive_entropy=False"]
    if common.is_number(quantile) and quantile < 1:
        change.append("top_entropy_quantile=1.0")
    if change:
        says = "not the clipped surrogate averaged over all tokens alone"
        return Finding("token_level_loss", "not_dapo", effective, says, tuple(change))
    status = "dapo" if kind == "dapo" else "convention"
    return Finding("token_level_loss", status, effective, TOKEN_LEVEL[kind])


def _filter(run: Run) -> Finding:
    trainer = run.source.trainer
    effective = {"trainer": trainer}
    if trainer and "dynamic" in trainer.lower():
        says = f"{trainer} refills; TRL itself has no such option"
        return Finding("dynamic_sampling", "convention", effective, says)
    says = f"TRL {run.names.version} has none: groups without signal stay in the batch"
    change = ("a trainer class that refills groups (no option does)",)
    return Finding("dynamic_sampling", "not_dapo", effective, says, change)


def _overlong(run: Run) -> Finding:
    cap = run.get("max_completion_length")
    call = run.source.overlong
    cache = cap // 5 if common.is_number(cap) else 4096
    wanted = f"get_soft_overlong_punishment({cap}, {cache})"
    change = (f"reward_funcs=[..., {wanted}]",)
    if call is None:
        status = "not_dapo" if run.source.form == "python" else "unknown"
        says = (
            "no get_soft_overlong_punishment among the rewards"
            if status == "not_dapo"
            else "a reward function, so it stands in the program and not in this file"
        )
        effective = {"generation_cap": cap}
        return Finding("soft_overlong", status, effective, says, change)
    l_max, l_cache = call["max_completion_len"], call["soft_punish_cache"]
    return common.overlong(l_max, l_cache, cap, None, change)


def _kl(run: Run) -> Finding:
    effective = {"beta": run.get("beta")}
    if hidden := common.unknown("no_kl", effective):
        return hidden
    if run.get("beta"):
        says = "DAPO has no KL term"
        return Finding("no_kl", "not_dapo", effective, says, ("beta=0.0",))
    return Finding("no_kl", "dapo", effective, "no KL term, no reference model")


def _advantage(run: Run) -> Finding:
    scale, n = run.get("scale_rewards"), run.get("num_generations")
    scale = {True: "group", False: "none"}.get(scale, scale)
    effective = {"scale_rewards": scale, "group_size": n}
    if hidden := common.unknown("group_advantage", effective):
        return hidden
    change = []
    if scale != "group":
        change.append("scale_rewards='group'")
    if not common.is_number(n) or n < 2:
        change.append("num_generations=16")
    if change:
        says = "not the reward normalised within the responses to one prompt"
        return Finding("group_advantage", "not_dapo", effective, says, tuple(change))
    says = "mean and standard deviation (ddof 1) of the group, eps 1e-4"
    return Finding("group_advantage", "dapo", effective, says)


def _dual(run: Run) -> Finding:
    delta = run.get("delta")
    effective = {"dual_clip": None, "delta": delta}
    if delta is None:
        says = "none, as in the paper"
        return Finding("dual_clip", "dapo", effective, says)
    says = "delta caps the ratio before the minimum: for A < 0 it acts as a dual clip"
    return Finding("dual_clip", "convention", effective, says)


def _updates(run: Run) -> Finding:
    steps = run.get("steps_per_generation")
    accumulation = run.get("gradient_accumulation_steps")
    iterations = run.get("num_iterations")
    batch, device = (
        run.get("generation_batch_size"),
        run.get("per_device_train_batch_size"),
    )
    effective = {
        "steps_per_generation": steps,
        "gradient_accumulation_steps": accumulation,
        "num_iterations": iterations,
    }
    values = [v for v in (steps, accumulation, iterations) if v is not None]
    per: Any = None
    if steps is None and batch is not None:
        effective |= {"generation_batch_size": batch, "per_device": device}
    elif all(common.is_number(v) and v > 0 for v in values) and len(values) >= 2:
        per = (1 if steps is None else steps / accumulation) * iterations
    for value in (*values, batch):
        per = value if isinstance(value, Unknown) else per
    times = 16 * accumulation if common.is_number(accumulation) else 16
    return common.updates(per, effective, f"steps_per_generation={times}")


def _dead(run: Run) -> list[Key]:
    """Given fields that TRL reads past, with the reason."""
    kind = run.get("loss_type")
    punished = run.source.overlong is not None
    rules = [
        (
            "epsilon",
            kind in ("cispo", "sapo", "vespo"),
            f"loss_type {kind} does not clip below",
        ),
        (
            "delta",
            kind in ("cispo", "sapo", "vespo"),
            f"loss_type {kind} reads no delta",
        ),
        ("use_bias_correction_kl", not run.get("beta"), "beta is 0"),
        ("sync_ref_model", not run.get("beta"), "beta is 0: no reference model"),
        (
            "mask_truncated_completions",
            punished and run.get("mask_truncated_completions") is True,
            "takes the truncated responses out of the loss, so their penalty only "
            "moves the group's mean; the paper's last runs have the penalty alone",
        ),
        (
            "vllm_importance_sampling_clip_max",
            run.get("use_vllm") is not True,
            "use_vllm is off",
        ),
    ]
    found = [(k, why) for k, silent, why in rules if silent and run.given(k)]
    lines = run.source.settings
    dead = [Key(key, why, lines[key].line) for key, why in found]
    if run.get("epsilon_high") is None and not run.given("epsilon_high"):
        why = f"unset means epsilon ({run.get('epsilon')}), so the clip is symmetric"
        dead.append(Key("epsilon_high", why))
    return dead


def _unknown_fields(source: Source, names: Names, report: Report) -> None:
    """Fields that GRPOConfig does not have: refused, or perhaps another parser's."""
    for key, setting in source.settings.items():
        if key in names.defaults:
            continue
        meant = common.closest(key, names.defaults)
        hint = f"; did you mean {meant}?" if meant else ""
        if source.form == "python" or meant:
            why = f"not a field of GRPOConfig: TRL stops{hint}"
            report.refused.append(Key(key, why, setting.line))
        else:
            report.notes.append(f"{key}: not a field of GRPOConfig; another parser's?")
