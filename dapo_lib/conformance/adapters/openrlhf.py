"""OpenRLHF's answers: its policy loss, estimators, filter loop and length penalty.

Its modules import DeepSpeed, Ray and vLLM at the top for functions that are not called
here; empty stand-ins take their place. The filter loop runs as it is, with generation
replaced by known outcomes.
Left out: overlong filtering and a cap on rounds, which it does not have; an answer
checker for answer lines, as it reads boxes only.
"""

import importlib.machinery
import importlib.util
import logging
import os
import sys
import types
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

os.environ["TORCHDYNAMO_DISABLE"] = "1"  # its entropy, uncompiled

import torch


class _Absent(types.ModuleType):
    """A module of which only names are asked."""

    def __init__(self, name):
        super().__init__(name)
        self.__spec__ = importlib.machinery.ModuleSpec(name, None)
        self.__path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything


class _Anything:
    def __init__(self, *_, **__):
        pass

    def __call__(self, function=None, **_):
        return function


class _Finder:
    """Answers imports of packages that are not needed for what is called."""

    names = ("deepspeed", "ray", "vllm", "aiohttp", "peft", "torchdata")
    names += ("datasets", "accelerate", "transformers", "bitsandbytes")

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _Absent(spec.name)

    def exec_module(self, module):
        pass


def _without_init(*packages):
    """Let modules of a package be imported without all that its __init__ imports."""
    root = Path(importlib.util.find_spec("openrlhf").submodule_search_locations[0])
    for package in packages:
        module = types.ModuleType(f"openrlhf.{package}")
        module.__path__ = [str(root.joinpath(*package.split(".")))]
        sys.modules[module.__name__] = module


sys.meta_path.insert(0, _Finder())
_without_init("models", "utils", "trainer", "trainer.ppo_utils", "trainer.ray")
_LAUNCHER = "openrlhf.trainer.ray.launcher"  # starts actors on a cluster
sys.modules[_LAUNCHER] = _Absent(_LAUNCHER)
logging.disable(logging.WARNING)

from openrlhf.models.loss import PolicyLoss, aggregate_loss  # noqa: E402
from openrlhf.models.utils import (  # noqa: E402
    compute_approx_kl,
    compute_entropy,
    log_probs_from_logits,
)
from openrlhf.trainer.ppo_utils import length_penalty  # noqa: E402
from openrlhf.utils.loss_utils import _optimizer_step_loss_norm  # noqa: E402


def versions():
    return {name: version(name) for name in ("openrlhf", "torch")}


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
    keep = torch.tensor(mask)
    weight = torch.tensor(advantages, dtype=ratio.dtype)[:, None].expand_as(ratio)
    policy = PolicyLoss(eps_low, eps_high, dual_clip, _token_level(reduction))
    value = policy(new, old, weight, keep, **_counts([keep]))[0]
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
        parts = [(v, torch.tensor(m)) for (v, _), m in zip(parts, masks, strict=False)]
    counts = _counts([m for _, m in parts])
    level = _token_level(reduction)
    total = sum(aggregate_loss(v, m, level, **counts).item() for v, m in parts)
    return total / len(parts)  # DeepSpeed divides by the accumulation steps


def _counts(masks):
    """The normalisers of an optimiser step, as its trainer computes them."""
    return _optimizer_step_loss_norm(masks, None, 1, len(masks))


def clip_shares(*, log_ratio, advantages, eps_low=0.2, eps_high=0.28, dual_clip=None):
    ratio = torch.tensor(log_ratio, dtype=torch.float64)
    old = torch.full_like(ratio, -5.0)
    weight = torch.tensor(advantages, dtype=torch.float64)[:, None].expand_as(ratio)
    keep = torch.ones_like(ratio)
    policy = PolicyLoss(eps_low, eps_high, dual_clip)
    return {"either": policy(old + ratio, old, weight, keep)[1].item()}


def kl(*, p, ref, estimator):
    p, ref = torch.tensor([p, ref], dtype=torch.float64)
    value = compute_approx_kl(p.log(), ref.log(), kl_estimator=estimator)
    return (p * value).sum().item()


def kl_gradient(*, p, ref):
    """Of its k3 loss term with `unbiased_gradient`, its option for this purpose."""
    p, ref = torch.tensor([p, ref], dtype=torch.float64)
    theta = p.log().requires_grad_()
    log_prob = theta.log_softmax(-1)
    value = compute_approx_kl(
        log_prob, ref.log(), p.log(), kl_estimator="k3", unbiased_gradient=True
    )
    (p * value).sum().backward()
    return theta.grad[0].item()


def log_prob(*, logits, tokens, temperature=1.0):
    z = torch.tensor(logits)
    return log_probs_from_logits(z, torch.tensor(tokens), temperature).tolist()


def entropy(*, logits, temperature=1.0):
    z = torch.tensor(logits, dtype=torch.float64)
    return compute_entropy(z / temperature).item()


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
    if exclude_truncated:
        raise NotImplementedError("no overlong filtering")
    if scale == "batch":
        raise NotImplementedError("no division by the deviation of the batch")
    sizes = {groups.count(g) for g in groups}
    if len(sizes) > 1:
        raise NotImplementedError("every group has n_samples_per_prompt responses")
    if sizes == {1}:
        raise NotImplementedError("n_samples_per_prompt = 1 is refused at the start")
    from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker

    kind = "group_norm" if scale == "group" else "dr_grpo"
    lengths = lengths or [1] * len(rewards)
    made = [
        SimpleNamespace(
            index=[i],
            rewards=torch.tensor([r], dtype=getattr(torch, dtype)),
            kl=torch.zeros(1, max(lengths)),
            action_mask=torch.arange(max(lengths))[None] < n,
            values=None,
            info={},
            prompts=[str(g)],
            truncated=None,
        )
        for i, (r, g, n) in enumerate(zip(rewards, groups, lengths, strict=False))
    ]
    maker = RemoteExperienceMaker.__new__(RemoteExperienceMaker)
    maker.strategy = SimpleNamespace(args=_args(kind, sizes.pop()))
    maker.advantage_estimator = kind
    maker.kl_ctl = SimpleNamespace(value=0.0)
    maker.compute_advantages_and_returns(made)
    return [e.advantages[0, 0].item() for e in made]


def _args(kind, group_size):
    advantage = SimpleNamespace(
        estimator=kind,
        gamma=1.0,
        lambd=1.0,
        no_std_norm=False,
        is_correction_level="off",
    )
    return SimpleNamespace(
        algo=SimpleNamespace(
            advantage=advantage,
            dynamic_filtering_enable=True,
            dynamic_filtering_range=(0.0, 1.0),
        ),
        rollout=SimpleNamespace(n_samples_per_prompt=group_size),
        reward=SimpleNamespace(
            clip_range=None, overlong_buffer_len=None, stop_properly_penalty_coef=None
        ),
        data=SimpleNamespace(max_len=20),
    )


def penalty(*, lengths, l_max, l_cache):
    experience = _experience([0.0] * len(lengths), lengths)
    length_penalty.apply_overlong_penalty([experience], l_max, l_cache)
    return experience.rewards.tolist()


def shaped_reward(*, correct, length, l_max, l_cache, truncated=False):
    experience = _experience([1.0 if correct else -1.0], [length])
    length_penalty.apply_overlong_penalty([experience], l_max, l_cache)
    return experience.rewards.item()


def _experience(rewards, lengths):
    return SimpleNamespace(
        rewards=torch.tensor(rewards, dtype=torch.float64),
        response_length=torch.tensor(lengths),
        info={},
    )


def keep(*, correct, rule_rewards, rewards, default_metric=False):
    """Its filter reads the score that the reward function returns, before shaping.

    A run with rewards of -1 and 1 sets the range of means to (-1, 1).
    """
    low = -1.0 if min(rule_rewards) < 0 else 0.0
    accepted, _ = _filter_loop([rule_rewards], 1, (low, 1.0))
    return bool(accepted)


def refill(*, n_correct, group_size, need, max_rounds=None, oversample=1.0):
    if max_rounds is not None:
        raise NotImplementedError("no cap on rounds: prompts are replaced until done")
    if oversample != 1.0:
        raise NotImplementedError("rejected prompts are replaced one by one")
    scores = [[1.0] * k + [0.0] * (group_size - k) for k in n_correct]
    accepted, drawn = _filter_loop(scores, need)
    return {"groups": accepted, "drawn": drawn}


def _filter_loop(scores, need, means=(0.0, 1.0)):
    """Run the generation loop on prompts whose scores are known: (accepted, drawn)."""
    from openrlhf.trainer.ppo_utils import samples_generator as module

    maker = module.SamplesGenerator.__new__(module.SamplesGenerator)
    maker.args = _args("group_norm", len(scores[0]))
    maker.args.algo.dynamic_filtering_range = means
    maker._dispatch_prompts_to_vllm = lambda prompts, labels, **_: list(prompts)
    maker._process_response_into_experience = lambda response, **_: response
    module.ray = SimpleNamespace(
        wait=lambda refs, **_: (refs[:1], refs[1:]),
        get=lambda ref: [
            SimpleNamespace(scores=torch.tensor([s]), prompt=ref) for s in scores[ref]
        ],
    )
    module.tqdm = lambda *_, **__: SimpleNamespace(
        update=lambda *_: None, set_postfix=lambda *_: None
    )
    batches = iter([(None, [i], [""], [None]) for i in range(len(scores))])
    found, drawn, _ = maker._generate_vllm(batches, need, True)
    return list(dict.fromkeys(e.prompt for e in found)), drawn


def grade(*, response, reference, prompt=""):
    if response and "\\boxed" not in response:
        raise NotImplementedError("reads boxed answers only")
    from openrlhf.utils.math_utils import extract_boxed_answer, grade_answer

    return bool(grade_answer(extract_boxed_answer(response), reference))


def _token_level(reduction):
    if reduction not in ("token_mean", "seq_mean"):
        raise NotImplementedError(f"no reduction of the kind {reduction}")
    return reduction == "token_mean"


def _padded(rows, width):
    longest = max([width or 0, *map(len, rows)])
    values = torch.zeros(len(rows), longest, dtype=torch.float64)
    mask = torch.zeros(len(rows), longest)
    for i, row in enumerate(rows):
        values[i, : len(row)] = torch.tensor(row, dtype=torch.float64)
        mask[i, : len(row)] = 1
    return values, mask
