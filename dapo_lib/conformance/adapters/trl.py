"""TRL's answers: GRPOTrainer's own methods, without a model.

The trainer is made without its constructor and given the attributes that the called
methods read; the model's forward pass and generation are replaced by given numbers.
Left out: dual clip and dynamic sampling, which TRL does not have; entropies and
log-probabilities, which its fused head computes inside a model.
"""

import contextlib
import inspect
import logging
import math
from collections import defaultdict
from importlib.metadata import version
from types import SimpleNamespace

import torch
from trl import GRPOConfig
from trl.rewards import accuracy_reward, get_soft_overlong_punishment
from trl.trainer import grpo_trainer
from trl.trainer.grpo_trainer import GRPOTrainer

logging.disable(logging.WARNING)
LOSS_TYPES = {
    "token_mean": "dapo",
    "seq_mean": "grpo",
    "seq_sum_const": "dr_grpo",
    "micro_token_mean": "bnpo",
}
PAD, EOS = 0, 1


def versions():
    names = ("trl", "transformers", "torch", "math-verify")
    return {name: version(name) for name in names}


class Trainer(GRPOTrainer):
    """A trainer of which only the methods under test are alive."""

    def __init__(self, **options):
        defaults = {
            name: field.default
            for name, field in inspect.signature(GRPOConfig).parameters.items()
            if field.default is not inspect.Parameter.empty
        }
        defaults["pad_to_multiple_of"] = None  # what "auto" is without a device
        args = SimpleNamespace(**(defaults | options))
        args.steps_per_generation = options.get("steps_per_generation", 1)
        args.gradient_accumulation_steps = options.get("gradient_accumulation_steps", 1)
        self.args = args
        self.model = SimpleNamespace(training=True)
        self.accelerator = SimpleNamespace(
            device=torch.device("cpu"),
            num_processes=1,
            process_index=0,
            is_main_process=True,
            gather=lambda x: x,
            gather_for_metrics=lambda x: x,
            reduce=lambda x, reduction="sum": x,
        )
        self.current_gradient_accumulation_steps = args.gradient_accumulation_steps
        self.epsilon_low = args.epsilon
        self.epsilon_high = (
            args.epsilon_high if args.epsilon_high is not None else args.epsilon
        )
        names = (
            "beta loss_type scale_rewards importance_sampling_level num_iterations "
            "mask_truncated_completions top_entropy_quantile max_completion_length "
            "off_policy_mask_threshold multi_objective_aggregation use_vllm "
            "vllm_importance_sampling_correction num_generations pad_to_multiple_of"
        )
        for name in names.split():
            setattr(self, name, getattr(args, name))
        self.num_generations_eval = self.num_generations
        self.entropy_coef, self._entropy_bonus_enabled = 0.0, False
        self.use_adaptive_entropy = self.aux_loss_enabled = False
        self._metrics = {"train": defaultdict(list), "eval": defaultdict(list)}
        self._logs = defaultdict(list)
        self._logs["rewards"], self._logs["extra"] = (
            defaultdict(list),
            defaultdict(list),
        )
        self._pending_extra_logs, self._pending_metrics = defaultdict(list), {}
        self.environments = self.environment_factories = self.tools = None
        self.eos_token_ids = [EOS]
        self._tokenizer = SimpleNamespace(pad_token_id=PAD, eos_token_id=EOS)
        self.log_completions = self.log_multimodal = self._is_vlm = False

    def _get_per_token_logps_and_entropies(self, *args, **kwargs):
        return self.given_log_prob, torch.zeros_like(self.given_log_prob), None


def _loss(trainer, log_prob, old, advantages, mask, items):
    # the fused head gives exactly 0 at masked labels, old and new alike
    trainer.given_log_prob = torch.where(mask.bool(), log_prob, 0.0)
    inputs = {
        "prompt_ids": torch.zeros(len(mask), 0, dtype=torch.long),
        "prompt_mask": torch.zeros(len(mask), 0, dtype=torch.long),
        "completion_ids": torch.zeros(mask.shape, dtype=torch.long),
        "completion_mask": mask,
        "advantages": advantages,
        "old_per_token_logps": torch.where(mask.bool(), old, 0.0),
        "num_items_in_batch": torch.as_tensor(items, dtype=log_prob.dtype),
    }
    return trainer._compute_loss(trainer.model, inputs)


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
    if dual_clip is not None:
        raise NotImplementedError("no dual clip (delta bounds the ratio itself)")
    trainer = Trainer(
        loss_type=_loss_type(reduction), epsilon=eps_low, epsilon_high=eps_high
    )
    ratio = torch.tensor(log_ratio, dtype=getattr(torch, dtype))
    old = torch.full_like(ratio, -1.0 - max(0.0, ratio.max().item()))
    new = (old + ratio).requires_grad_()
    keep = torch.tensor(mask)
    weight = torch.tensor(advantages, dtype=ratio.dtype)
    value = _loss(trainer, new, old, weight, keep, keep.sum())
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
    steps = len(micro_batches)
    trainer = Trainer(
        loss_type=_loss_type(reduction),
        gradient_accumulation_steps=steps,
        steps_per_generation=rollout_micro_batches or steps,
        max_completion_length=l_max or 1,
    )
    parts = [_padded(rows, width) for rows in micro_batches]
    if masks is not None:
        parts = [(v, torch.tensor(m)) for (v, _), m in zip(parts, masks, strict=False)]
    if truncated is not None:
        parts = [
            (v, _filtered(m, t)) for (v, m), t in zip(parts, truncated, strict=True)
        ]
    items = sum(m.sum() for _, m in parts)
    if rollout_micro_batches is not None:
        items = items * rollout_micro_batches / steps
    total = 0.0
    for values, mask in parts:
        log_prob = torch.full_like(values, -1.0)
        total += _loss(trainer, log_prob, log_prob, -values, mask, items).item()
    return total


def _filtered(mask, truncated):
    """The completion mask that scoring makes when overlong filtering is on."""
    ids = [
        [5] * int(row.sum()) if cut else [5] * (int(row.sum()) - 1) + [EOS]
        for row, cut in zip(mask, truncated, strict=True)
    ]
    made = _score(ids, [0.0] * len(ids), mask_truncated_completions=True)
    return made["completion_mask"]


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
        raise NotImplementedError("a masked response stays in the baseline")
    sizes = [groups.count(g) for g in dict.fromkeys(groups)]
    if len(set(sizes)) > 1:
        raise NotImplementedError("every group has num_generations responses")
    if sizes[0] == 1:
        raise NotImplementedError("num_generations = 1 is refused in training")
    lengths = lengths or [3] * len(rewards)
    cut = truncated or [False] * len(rewards)
    ids = [
        [5] * n if c else [5] * (n - 1) + [EOS] * (n > 0)
        for n, c in zip(lengths, cut, strict=False)
    ]
    if any(n == 0 for n in lengths):
        ids = [row or [EOS] for row in ids]  # an empty response is its end token
    options = {"num_generations": sizes[0], "scale_rewards": scale}
    if truncated:
        options["mask_truncated_completions"] = True
    return _score(ids, rewards, **options)["advantages"].tolist()


def _score(completion_ids, given, *, eos_ids=(EOS,), pad_id=PAD, **options):
    options.setdefault("num_generations", len(given))
    trainer = Trainer(**options)
    trainer.eos_token_ids = list(eos_ids)
    trainer._tokenizer.pad_token_id = pad_id
    trainer.state = SimpleNamespace(global_step=0)
    trainer.reward_funcs, trainer.reward_func_names = [None], ["given"]
    trainer.reward_weights = torch.ones(1)
    n = len(completion_ids)
    trainer._generate = lambda prompts: (
        [[5]] * n,
        completion_ids,
        None,
        ["x"] * n,
        None,
        {},
        None,
        None,
    )
    column = torch.tensor(given, dtype=torch.float32)[:, None]
    trainer._calculate_rewards = lambda *_: column
    grpo_trainer.disable_gradient_checkpointing = lambda *_: contextlib.nullcontext()
    return trainer._generate_and_score_completions([{"prompt": "x"}] * n)


def response(*, tokens, eos_ids, pad_id):
    trainer = Trainer()
    trainer.eos_token_ids = list(eos_ids)
    completion = _generated(trainer, tokens, pad_id)
    scored = _score(
        [completion] * 2,
        [0.0, 0.0],
        eos_ids=eos_ids,
        pad_id=pad_id,
        mask_truncated_completions=True,
    )
    cut = not bool(scored["completion_mask"][0].any())
    mask = [1] * len(completion) + [0] * (len(tokens) - len(completion))
    return {"mask": mask, "truncated": cut}


def _generated(trainer, tokens, pad_id):
    """The ids that one turn of generation keeps of a padded row."""
    row = torch.tensor([[5, *tokens]])
    model = SimpleNamespace(generate=lambda **_: row)
    trainer.model_wrapped = model
    trainer.use_transformers_continuous_batching = False
    trainer.use_transformers_paged = False
    trainer.generation_kwargs, trainer.generation_config = {}, None
    trainer._dist = SimpleNamespace(
        summon_full_params=lambda *_, **__: contextlib.nullcontext()
    )
    trainer._tokenizer.pad_token_id = pad_id
    trainer._tokenizer.pad = lambda *_, **__: {"input_ids": torch.tensor([[5]])}
    trainer.processing_class = trainer._tokenizer
    grpo_trainer.unwrap_model_for_generation = lambda *_, **__: contextlib.nullcontext(
        model
    )
    grpo_trainer.profiling_context = lambda *_: contextlib.nullcontext()
    parent = (
        grpo_trainer._BaseTrainer if hasattr(grpo_trainer, "_BaseTrainer") else None
    )
    for base in [parent, *GRPOTrainer.__mro__[1:]]:
        if base is not None and "_prepare_inputs" in vars(base):
            base._prepare_inputs = lambda self, inputs: inputs
    ids, _ = trainer._generate_single_turn([[5]], None, {}, 1)
    return ids[0]


def clip_shares(*, log_ratio, advantages, eps_low=0.2, eps_high=0.28, dual_clip=None):
    trainer = Trainer(epsilon=eps_low, epsilon_high=eps_high)
    _shares(trainer, log_ratio, advantages)
    logged = trainer._metrics["train"]
    names = {"low": "low_mean", "high": "high_mean", "either": "region_mean"}
    return {ours: logged[f"clip_ratio/{name}"][0] for ours, name in names.items()}


def _shares(trainer, log_ratio, advantages):
    ratio = torch.tensor(log_ratio, dtype=torch.float64)
    old = torch.full_like(ratio, -5.0)
    weight = torch.tensor(advantages, dtype=torch.float64)
    mask = torch.ones(ratio.shape, dtype=torch.long)
    _loss(trainer, old + ratio, old, weight, mask, mask.sum())


def mean_share(*, counts):
    trainer = Trainer(epsilon=0.2, epsilon_high=0.28)
    for hits, tokens in counts:
        row = [[math.log(1.5)] * hits + [0.0] * (tokens - hits)]
        _shares(trainer, row, [1.0])
    grpo_trainer_log = {}
    for base in GRPOTrainer.__mro__[1:]:
        if "log" in vars(base):
            base.log = lambda self, logs, *_: grpo_trainer_log.update(logs)
            break
    trainer.log({})
    return grpo_trainer_log["clip_ratio/high_mean"]


def kl(*, p, ref, estimator):
    if estimator != "k3":
        raise NotImplementedError("k3 only")
    trainer = Trainer(beta=1.0)
    p, ref = torch.tensor([p, ref], dtype=torch.float64)
    values = [_kl_term(trainer, p.log()[i], ref.log()[i]).item() for i in range(len(p))]
    return sum(w.item() * v for w, v in zip(p, values, strict=False))


def kl_gradient(*, p, ref):
    trainer = Trainer(beta=1.0)
    p, ref = torch.tensor([p, ref], dtype=torch.float64)
    theta = p.log().requires_grad_()
    log_prob = theta.log_softmax(-1)
    terms = [_kl_term(trainer, log_prob[i], ref.log()[i]) for i in range(len(p))]
    sum(w * term for w, term in zip(p, terms, strict=False)).backward()
    return theta.grad[0].item()


def _kl_term(trainer, log_prob, log_prob_ref):
    """The loss of one token with advantage 0: its KL term alone, ratio 1."""
    new = log_prob.reshape(1, 1)
    trainer.given_log_prob = new
    one = torch.ones(1, 1, dtype=torch.long)
    inputs = {
        "prompt_ids": torch.zeros(1, 0, dtype=torch.long),
        "prompt_mask": torch.zeros(1, 0, dtype=torch.long),
        "completion_ids": one,
        "completion_mask": one,
        "advantages": torch.zeros(1, dtype=new.dtype),
        "old_per_token_logps": new.detach(),
        "ref_per_token_logps": log_prob_ref.reshape(1, 1),
        "num_items_in_batch": torch.ones((), dtype=new.dtype),
    }
    return trainer._compute_loss(trainer.model, inputs)


def penalty(*, lengths, l_max, l_cache):
    punish = get_soft_overlong_punishment(l_max, l_cache)
    return punish([[5] * n for n in lengths])


def shaped_reward(*, correct, length, l_max, l_cache, truncated=False):
    raise NotImplementedError("the rule reward is the user's; TRL adds the columns up")


def grade(*, response, reference, prompt=""):
    if "Answer" in response or "\u7b54\u6848" in response:
        raise NotImplementedError(
            "accuracy_reward reads LaTeX answers, by its documents"
        )
    (reward,) = accuracy_reward([[{"content": response}]], [reference])
    return None if reward is None else reward == 1.0


def rewards(*, responses, reference):
    completions = [[{"content": r}] for r in responses]
    return accuracy_reward(completions, [reference] * len(responses))


def _loss_type(reduction):
    if reduction not in LOSS_TYPES:
        raise NotImplementedError(f"no reduction of the kind {reduction}")
    return LOSS_TYPES[reduction]


def _padded(rows, width):
    longest = max([width or 0, *map(len, rows)])
    values = torch.zeros(len(rows), longest, dtype=torch.float64)
    mask = torch.zeros(len(rows), longest, dtype=torch.long)
    for i, row in enumerate(rows):
        values[i, : len(row)] = torch.tensor(row, dtype=torch.float64)
        mask[i, : len(row)] = 1
    return values, mask
