"""verl's answers: its policy loss, advantages, reward manager, filter and metrics.

Called as its own actor worker does: token counts of the whole mini-batch go into
`global_batch_info`. The queue that hands rollouts to the filter is replaced by a dict.
Left out: overlong filtering and a refill loop that runs without a cluster.
"""

import sys
import types
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

try:
    import transfer_queue  # noqa: F401
except ImportError:  # the filter only fetches values from it; see keep()
    queue = types.ModuleType("transfer_queue")
    queue.KVBatchMeta = object
    sys.modules["transfer_queue"] = queue

import verl.utils.torch_functional as verl_functional
from verl.trainer.ppo import core_algos
from verl.trainer.ppo.core_algos import agg_loss, get_policy_loss_fn, kl_penalty
from verl.trainer.ppo.metric_utils import process_validation_metrics
from verl.utils.metric import reduce_metrics
from verl.utils.reward_score import math_dapo
from verl.workers.config import ActorConfig

MODES = {
    "token_mean": "token-mean",
    "seq_mean": "seq-mean-token-mean",
    "seq_sum_const": "seq-mean-token-sum-norm",
}


def versions():
    return {name: version(name) for name in ("verl", "torch", "numpy")}


def _config(eps_low=0.2, eps_high=0.28, dual_clip=None, info=None):
    config = ActorConfig(
        strategy="fsdp",
        rollout_n=1,
        ppo_micro_batch_size_per_gpu=1,
        clip_ratio_low=eps_low,
        clip_ratio_high=eps_high,
        **({} if dual_clip is None else {"clip_ratio_c": dual_clip}),
    )
    config.global_batch_info.update(info or {})
    return config


def _counts(mask, l_max=None):
    """What the worker puts into the configuration before the first micro-batch."""
    rows = int((mask.sum(-1) > 0).sum())
    info = {"dp_size": 1, "batch_num_tokens": mask.sum().item()}
    info |= {"global_batch_size": rows, "loss_scale_factor": l_max}
    return info


def loss(
    *,
    log_ratio,
    advantages,
    mask,
    eps_low=0.2,
    eps_high=0.28,
    reduction="token_mean",
    dual_clip=None,
    dtype="float64",
):
    ratio = torch.tensor(log_ratio, dtype=getattr(torch, dtype))
    old = torch.full_like(ratio, -1.0 - max(0.0, ratio.max().item()))
    new = (old + ratio).requires_grad_()
    keep = torch.tensor(mask).bool()
    weight = torch.tensor(advantages, dtype=ratio.dtype)[:, None].expand_as(ratio)
    config = _config(eps_low, eps_high, dual_clip, _counts(keep))
    value, _ = get_policy_loss_fn("vanilla")(
        old, new, weight, keep, _mode(reduction), config
    )
    value.backward()
    return {"loss": value.item(), "grad": new.grad.tolist()}


def reduce(
    *,
    micro_batches,
    masks=None,
    groups=None,
    truncated=None,
    reduction="token_mean",
    l_max=None,
    width=None,
    rollout_micro_batches=None,
):
    if truncated is not None:
        raise NotImplementedError("no overlong filtering")
    parts = [_padded(rows, width) for rows in micro_batches]
    if masks is not None:
        parts = [
            (v, torch.tensor(m).bool()) for (v, _), m in zip(parts, masks, strict=False)
        ]
    tokens = torch.cat([m.sum(-1) for _, m in parts])
    whole = torch.arange(int(tokens.max()) or 1)[None] < tokens[:, None]
    info = _counts(whole, l_max)
    return sum(agg_loss(v, m, _mode(reduction), **info).item() for v, m in parts)


def advantages(
    *,
    rewards,
    groups,
    scale="group",
    dtype="float64",
    lengths=None,
    truncated=None,
    exclude_truncated=False,
):
    if scale == "batch":
        raise NotImplementedError("no division by the deviation of the batch")
    if exclude_truncated:
        raise NotImplementedError("no overlong filtering")
    lengths = lengths or [1] * len(rewards)
    mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    mask = mask.to(getattr(torch, dtype))
    scores = torch.zeros_like(mask)
    for row, (reward, length) in enumerate(zip(rewards, lengths, strict=False)):
        scores[row, length - 1] = reward  # as its reward manager writes them
    result, _ = core_algos.compute_grpo_outcome_advantage(
        token_level_rewards=scores,
        # an unmasked first column, to read what every token of a row would get
        response_mask=torch.ones_like(mask),
        index=np.array(groups),
        norm_adv_by_std_in_grpo=scale == "group",
    )
    return result[:, 0].tolist()


def clip_shares(*, log_ratio, advantages, eps_low=0.2, eps_high=0.28, dual_clip=None):
    ratio = torch.tensor(log_ratio, dtype=torch.float64)
    old = torch.full_like(ratio, -5.0)
    weight = torch.tensor(advantages, dtype=torch.float64)[:, None].expand_as(ratio)
    keep = torch.ones_like(ratio).bool()
    config = _config(eps_low, eps_high, dual_clip, _counts(keep))
    _, logged = get_policy_loss_fn("vanilla")(
        old, old + ratio, weight, keep, "token-mean", config
    )
    names = {"either": "actor/pg_clipfrac", "low": "actor/pg_clipfrac_lower"}
    found = {ours: float(logged[name]) for ours, name in names.items()}
    if found["low"] == 0.0 and found["either"] == 0.5:
        del found["low"]  # it is the dual clip's: row C08 is about that name
    return found


def mean_share(*, counts):
    return float(
        reduce_metrics({"actor/pg_clipfrac": [h / n for h, n in counts]})[
            "actor/pg_clipfrac"
        ]
    )


def kl(*, p, ref, estimator):
    p, ref = torch.tensor([p, ref], dtype=torch.float64)
    return (p * kl_penalty(p.log(), ref.log(), estimator)).sum().item()


def kl_gradient(*, p, ref):
    p, ref = torch.tensor([p, ref], dtype=torch.float64)
    theta = p.log().requires_grad_()
    log_prob = theta.log_softmax(-1)
    kind = ActorConfig.__dataclass_fields__["kl_loss_type"].default
    (p * kl_penalty(log_prob, ref.log(), kind)).sum().backward()
    return theta.grad[0].item()


def log_prob(*, logits, tokens, temperature=1.0):
    z = torch.tensor(logits) / temperature  # its worker divides before the softmax
    return verl_functional.logprobs_from_logits(z, torch.tensor(tokens)).tolist()


def entropy(*, logits, temperature=1.0):
    z = torch.tensor(logits, dtype=torch.float64) / temperature
    return verl_functional.entropy_from_logits(z[None])[0].item()


def keep(*, correct, rule_rewards, rewards, default_metric=False):
    replay_buffer = _replay_buffer()
    metric = _default_filter_metric() if default_metric else "acc"
    keys = [f"a_{i}" for i in range(len(rewards))]
    fetched = {
        "rm_scores": [torch.tensor([r]) for r in rewards],
        "extra_fields": [
            {"reward_extra_info": {"acc": float(c), "score": r}}
            for c, r in zip(correct, rule_rewards, strict=False)
        ],
    }
    replay_buffer.tq.kv_batch_get = lambda select_fields, **_: {
        name: fetched[name] for name in select_fields
    }
    buffer = SimpleNamespace(
        filter_groups_metric=metric,
        finished_keys={"train": {"a"}},
        partitions={"train": keys},
        _dapo_classification_cache=defaultdict(dict),
    )
    dropped, _ = replay_buffer.ReplayBuffer._dapo_filtered_keys(buffer, "train")
    return "a" not in dropped


def _replay_buffer():
    """The module alone: its package's __init__ starts rollout servers."""
    import importlib

    import verl

    name = "verl.trainer.ppo.v1"
    if name not in sys.modules:
        package = types.ModuleType(name)
        package.__path__ = [str(Path(verl.__file__).parent / "trainer" / "ppo" / "v1")]
        sys.modules[name] = package
    return importlib.import_module(f"{name}.replay_buffer")


def _default_filter_metric():
    """`algorithm.filter_groups.metric` as its own configuration file has it."""
    import verl
    from omegaconf import OmegaConf

    folder = Path(verl.__file__).parent / "trainer" / "config"
    config = OmegaConf.load(folder / "ppo_trainer.yaml")
    return config.algorithm.filter_groups.metric


def penalty(*, lengths, l_max, l_cache):
    return [_manager_reward(True, n, l_max, l_cache)[1] for n in lengths]


def shaped_reward(*, correct, length, l_max, l_cache, truncated=False):
    return _manager_reward(correct, length, l_max, l_cache)[0]


def _manager_reward(correct, length, l_max, l_cache):
    """Run the DAPO reward manager on one response: (total, penalty)."""
    from tensordict import TensorDict
    from verl import DataProto
    from verl.workers.reward_manager.dapo import DAPORewardManager

    tokenizer = SimpleNamespace(decode=lambda *_, **__: "x", eos_token="</s>")
    buffer = SimpleNamespace(enable=True, len=l_cache, penalty_factor=1.0, log=True)
    manager = DAPORewardManager(
        tokenizer,
        0,
        compute_score=lambda **_: 1.0 if correct else -1.0,
        max_resp_len=l_max,
        overlong_buffer_cfg=buffer,
    )
    width = max(length, 1)
    seen = torch.zeros(1, 1 + width, dtype=torch.long)
    seen[:, : 1 + length] = 1
    batch = TensorDict(
        {
            "prompts": torch.ones(1, 1, dtype=torch.long),
            "responses": torch.ones(1, width, dtype=torch.long),
            "attention_mask": seen,
        },
        batch_size=1,
    )
    plain = {
        "reward_model": np.array([{"ground_truth": "x"}], dtype=object),
        "data_source": np.array(["x"], dtype=object),
    }
    made = manager(DataProto(batch=batch, non_tensor_batch=plain), return_dict=True)
    total = made["reward_tensor"].sum().item()
    return total, float(made["reward_extra_info"]["overlong_reward"][0])


def grade(*, response, reference, prompt=""):
    strict = "\\boxed" in response  # its option for boxed answers
    if response.startswith("\\dfrac"):
        raise NotImplementedError("reads an answer line or a box")
    scored = math_dapo.compute_score(response, reference, strict_box_verify=strict)
    return bool(scored["acc"])


def rewards(*, responses, reference):
    return [
        math_dapo.compute_score(r, reference, strict_box_verify="\\boxed" in r)["score"]
        for r in responses
    ]


def pass_at_k(*, n, c, k):
    """best@k of its validation metrics, for one prompt with n answers."""
    scores = {"reward": [1.0] * c + [0.0] * (n - c)}
    found = process_validation_metrics(["x"] * n, ["u"] * n, scores)["x"]["reward"]
    name = f"best@{k}/mean"
    if name not in found:
        raise NotImplementedError(f"reports best@k for k = 2, 4, 8 … n, not for {k}")
    return float(found[name])


def accuracy(*, correct, rewards):
    scores = {"acc": [float(c) for c in correct], "reward": rewards}
    n = len(correct)
    found = process_validation_metrics(["x"] * n, ["u"] * n, scores)["x"]["acc"]
    return float(found[f"mean@{n}"])


def _mode(reduction):
    if reduction not in MODES:
        raise NotImplementedError(f"no reduction of the kind {reduction}")
    return MODES[reduction]


def _padded(rows, width):
    longest = max([width or 0, *map(len, rows)])
    values = torch.zeros(len(rows), longest, dtype=torch.float64)
    mask = torch.zeros(len(rows), longest, dtype=torch.bool)
    for i, row in enumerate(rows):
        values[i, : len(row)] = torch.tensor(row, dtype=torch.float64)
        mask[i, : len(row)] = True
    return values, mask
