"""verl: what its options come to, and which of them do nothing.

Facts of verl 0.9.1, read in its code: `clip_ratio` gives way to `clip_ratio_low` and
`clip_ratio_high`, which have defaults; the dual clip is always on; the filter lives in
the V1 trainer, which ignores `max_num_gen_batches` and sets `gen_batch_size` to 1; the
overlong buffer is read from `reward.reward_kwargs` by the reward manager `dapo` only.
Left out: engines below the trainer (FSDP, Megatron), and asynchronous trainers.
"""

from __future__ import annotations

from typing import Any

from dapo_lib.engines.check_config import common
from dapo_lib.engines.check_config.names import Names
from dapo_lib.engines.check_config.report import Finding, Key, Report
from dapo_lib.engines.check_config.source import Setting, Source, Unknown

ACTOR = "actor_rollout_ref.actor"
ROLLOUT = "actor_rollout_ref.rollout"
FILTER = "algorithm.filter_groups"
BUFFER = "reward.reward_kwargs.overlong_buffer_cfg"
MAX_LEN = "reward.reward_kwargs.max_resp_len"
# Old places that 0.9.1 still moves to the new ones before training.
MOVED = (
    ("reward_model.reward_kwargs.", "reward.reward_kwargs."),
    ("reward_model.reward_manager", "reward.reward_manager.name"),
)
OPTIONAL = (f"{BUFFER}.", MAX_LEN)
CORRECTNESS = ("acc",)


class Run:
    """Effective values of a verl run: the file over the defaults of the version."""

    def __init__(self, source: Source, names: Names) -> None:
        self.names = names
        self.given: dict[str, Setting] = {}
        for key, setting in source.settings.items():
            if setting.mark != "~":
                self.given[moved(key)] = setting

    def get(self, key: str) -> Any:
        """The value of a key: given, else the default."""
        if key in self.given:
            return common.plain(self.given[key].value)
        return self.names.defaults.get(key)

    def line(self, key: str) -> int | None:
        """Where the key stands in the file."""
        return self.given[key].line if key in self.given else None


def moved(key: str) -> str:
    """The place a key has in 0.9.1.

    >>> moved("reward_model.reward_manager")
    'reward.reward_manager.name'
    """
    for old, new in MOVED:
        if key == old or (old.endswith(".") and key.startswith(old)):
            return new + key[len(old) :]
    return key


def check(source: Source, names: Names, report: Report) -> None:
    """Fill a report with the findings on a verl configuration."""
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
            run.get(f"{ROLLOUT}.temperature"),
            run.get(f"{ROLLOUT}.top_p"),
            (f"{ROLLOUT}.temperature=1.0", f"{ROLLOUT}.top_p=1.0"),
        ),
    ]
    report.no_effect += _dead(run)
    _unknown_keys(source, names, report)


def _clip(run: Run) -> Finding:
    wanted = {"low": common.EPS_LOW, "high": common.EPS_HIGH}
    change = [
        f"{ACTOR}.clip_ratio_{side}={value}"
        for side, value in wanted.items()
        if run.get(f"{ACTOR}.clip_ratio_{side}") != value
    ]
    both = [_or_clip_ratio(run, side) for side in wanted]
    return common.clip(both[0], both[1], tuple(change))


def _or_clip_ratio(run: Run, side: str) -> Any:
    value = run.get(f"{ACTOR}.clip_ratio_{side}")
    return run.get(f"{ACTOR}.clip_ratio") if value is None else value


def _loss(run: Run) -> Finding:
    mode = run.get(f"{ACTOR}.policy_loss.loss_mode")
    reduction = run.get(f"{ACTOR}.loss_agg_mode")
    entropy = run.get(f"{ACTOR}.entropy_coeff")
    effective = {"reduction": reduction, "loss_mode": mode, "entropy_coeff": entropy}
    if hidden := common.unknown("token_level_loss", effective):
        return hidden
    change = []
    if mode != "vanilla":
        change.append(f"{ACTOR}.policy_loss.loss_mode=vanilla")
    if reduction != "token-mean":
        change.append(f"{ACTOR}.loss_agg_mode=token-mean")
    if entropy:
        change.append(f"{ACTOR}.entropy_coeff=0")
    if change:
        says = "not the clipped surrogate averaged over tokens alone"
        return Finding("token_level_loss", "not_dapo", effective, says, tuple(change))
    says = "mean over the tokens of the mini-batch, all ranks together"
    return Finding("token_level_loss", "dapo", effective, says)


def _filter(run: Run) -> Finding:
    enable, metric = run.get(f"{FILTER}.enable"), run.get(f"{FILTER}.metric")
    v1 = run.get("trainer.use_v1")
    effective = {"enable": enable, "metric": metric, "use_v1": v1}
    if hidden := common.unknown("dynamic_sampling", effective):
        return hidden
    if not enable:
        change = (f"{FILTER}.enable=True", f"{FILTER}.metric=acc")
        return Finding("dynamic_sampling", "not_dapo", effective, "off", change)
    if not v1:
        says = "only the V1 trainer filters; use_v1=False trains on every group"
        change = ("trainer.use_v1=True",)
        return Finding("dynamic_sampling", "not_dapo", effective, says, change)
    if metric not in CORRECTNESS:
        says = (
            f"keeps groups whose {metric} varies; shaped rewards vary in groups that "
            "are all right or all wrong"
        )
        change = (f"{FILTER}.metric=acc",)
        return Finding("dynamic_sampling", "not_dapo", effective, says, change)
    says = "keeps groups whose correctness varies; refilled without a cap on rounds"
    return Finding("dynamic_sampling", "dapo", effective, says)


def _overlong(run: Run) -> Finding:
    manager = run.get("reward.reward_manager.name")
    enable = run.get(f"{BUFFER}.enable")
    cap = run.get("data.max_response_length")
    change = []
    if manager != "dapo":
        change.append("reward.reward_manager.name=dapo")
    if enable is not True:
        change.append(f"+{BUFFER}.enable=True")
    length = run.get(f"{BUFFER}.len")
    if not common.is_number(length):
        change.append(f"+{BUFFER}.len={cap // 5 if common.is_number(cap) else 4096}")
    if run.get(f"{BUFFER}.penalty_factor") is None:
        change.append(f"+{BUFFER}.penalty_factor=1.0")
    if run.get(MAX_LEN) != cap:
        change.append(f"+{MAX_LEN}={cap}")
    effective = {"manager": manager, "enable": enable}
    if hidden := common.unknown("soft_overlong", effective):
        return hidden
    if manager != "dapo" or enable is not True:
        says = f"off: reward manager {manager}, buffer enable {enable}"
        return Finding("soft_overlong", "not_dapo", effective, says, tuple(change))
    factor = run.get(f"{BUFFER}.penalty_factor")
    if factor is None:
        says = "penalty_factor is missing: the reward manager stops"
        return Finding("soft_overlong", "not_dapo", effective, says, tuple(change))
    return common.overlong(run.get(MAX_LEN), length, cap, factor, tuple(change))


def _kl(run: Run) -> Finding:
    loss, reward = (
        run.get(f"{ACTOR}.use_kl_loss"),
        run.get("algorithm.use_kl_in_reward"),
    )
    effective = {"use_kl_loss": loss, "use_kl_in_reward": reward}
    if hidden := common.unknown("no_kl", effective):
        return hidden
    change = []
    if loss:
        change.append(f"{ACTOR}.use_kl_loss=False")
    if reward:
        change.append("algorithm.use_kl_in_reward=False")
    if change:
        says = "DAPO has no KL term"
        return Finding("no_kl", "not_dapo", effective, says, tuple(change))
    return Finding("no_kl", "dapo", effective, "no KL term")


def _advantage(run: Run) -> Finding:
    estimator, n = run.get("algorithm.adv_estimator"), run.get(f"{ROLLOUT}.n")
    scaled = run.get("algorithm.norm_adv_by_std_in_grpo")
    effective = {"estimator": estimator, "scaled_by_std": scaled, "group_size": n}
    if hidden := common.unknown("group_advantage", effective):
        return hidden
    change = []
    if estimator not in ("grpo", "grpo_vectorized"):
        change.append("algorithm.adv_estimator=grpo")
    if not scaled:
        change.append("algorithm.norm_adv_by_std_in_grpo=True")
    if not common.is_number(n) or n < 2:
        change.append(f"{ROLLOUT}.n=16")
    if change:
        says = "not the reward normalised within the responses to one prompt"
        return Finding("group_advantage", "not_dapo", effective, says, tuple(change))
    says = "mean and standard deviation (ddof 1) of the group, eps 1e-6"
    return Finding("group_advantage", "dapo", effective, says)


def _dual(run: Run) -> Finding:
    c = run.get(f"{ACTOR}.clip_ratio_c")
    effective = {"dual_clip": c}
    says = "always on in verl, and not in the paper; its script has 10"
    return Finding("dual_clip", "convention", effective, says)


def _updates(run: Run) -> Finding:
    batch, mini = (
        run.get("data.train_batch_size"),
        run.get(f"{ACTOR}.ppo_mini_batch_size"),
    )
    epochs = run.get(f"{ACTOR}.ppo_epochs")
    effective = {"prompts": batch, "prompts_per_update": mini, "epochs": epochs}
    numbers = all(common.is_number(v) and v > 0 for v in (batch, mini, epochs))
    per: Any = batch / mini * epochs if numbers else None
    for value in (batch, mini, epochs):
        per = value if isinstance(value, Unknown) else per
    smaller = max(batch // 16, 1) if numbers else 32
    change = f"{ACTOR}.ppo_mini_batch_size={smaller}"
    return common.updates(per, effective, change)


def _dead(run: Run) -> list[Key]:
    """Given keys that the engine reads past, with the reason."""
    filtered = run.get(f"{FILTER}.enable") is True
    sides = [run.get(f"{ACTOR}.clip_ratio_{s}") for s in ("low", "high")]
    manager = run.get("reward.reward_manager.name")
    rules = [
        (
            f"{ACTOR}.clip_ratio",
            None not in sides,
            f"clip_ratio_low={sides[0]}, clip_ratio_high={sides[1]} are read instead",
        ),
        (
            f"{FILTER}.max_num_gen_batches",
            filtered and run.get(f"{FILTER}.max_num_gen_batches") != 0,
            "the V1 trainer ignores it: refilling has no cap on rounds",
        ),
        (
            "data.gen_batch_size",
            filtered,
            "set to 1 when the filter is on",
        ),
        (
            f"{FILTER}.metric",
            not filtered,
            "the filter is off",
        ),
        (
            f"{ACTOR}.kl_loss_coef",
            run.get(f"{ACTOR}.use_kl_loss") is False,
            "use_kl_loss is False",
        ),
        (
            f"{ACTOR}.loss_scale_factor",
            run.get(f"{ACTOR}.loss_agg_mode") != "seq-mean-token-sum-norm",
            "only seq-mean-token-sum-norm reads it",
        ),
    ]
    dead = [(k, why) for k, silent, why in rules if silent and k in run.given]
    if manager != "dapo":
        why = f"the reward manager is {manager}; only dapo reads the buffer"
        dead += [(k, why) for k in run.given if k.startswith(OPTIONAL)]
    return [Key(key, why, run.line(key)) for key, why in dead]


def _unknown_keys(source: Source, names: Names, report: Report) -> None:
    """Keys that 0.9.1 does not have: refused without `+`, dead with it."""
    known = [*names.defaults, *(f"{BUFFER}.{k}" for k in ("enable", "len", "log"))]
    known += [f"{BUFFER}.penalty_factor", MAX_LEN]
    for key, setting in source.settings.items():
        place = moved(key)
        if place.split(".")[0] in ("hydra", "ray_kwargs"):
            continue
        if place.startswith(OPTIONAL):
            if source.form == "overrides" and not setting.mark:
                why = f"not in verl {names.version} until added: write +{key}"
                report.refused.append(Key(key, why, setting.line))
        elif not names.knows(key):
            _typo(key, setting, source, known, report)
        elif setting.mark == "+" and key in names.defaults:
            why = "already there: Hydra refuses to add it; write it without +"
            report.refused.append(Key("+" + key, why, setting.line))


def _typo(
    key: str, setting: Setting, source: Source, known: list[str], report: Report
) -> None:
    meant = common.closest(key, known)
    hint = f"; did you mean {meant}?" if meant else ""
    if key.startswith("reward_model.overlong_buffer"):
        hint = f"; the buffer is read from {BUFFER}"
    if source.form == "overrides" and setting.mark not in ("+", "++"):
        why = f"no such key: verl stops{hint}"
        report.refused.append(Key(key, why, setting.line))
    else:
        why = f"no such key: added and never read{hint}"
        report.no_effect.append(Key(setting.mark + key, why, setting.line))
