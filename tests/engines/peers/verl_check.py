"""verl's own code on an export: composition, validation, data, reward, loss.

`python verl_check.py WORDS`: WORDS is the JSON list of the launch script's arguments;
prints JSON. Left out: Ray, GPUs and the rollout server, which this machine lacks.
"""

import asyncio
import json
import sys
import types
from importlib.metadata import version
from pathlib import Path

import torch
import verl
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from verl.trainer.ppo.core_algos import get_policy_loss_fn
from verl.trainer.ppo.utils import need_critic, need_reference_policy
from verl.utils.config import omega_conf_to_dataclass, validate_config

FOLDER = Path(verl.__file__).parent / "trainer" / "config"


def composed(words):
    """The configuration as `main_ppo` gets it, after verl's own validation."""
    with initialize_config_dir(config_dir=str(FOLDER), version_base=None):
        config = compose("ppo_trainer", overrides=words)
    reference, critic = need_reference_policy(config), need_critic(config)
    validate_config(config, use_reference_policy=reference, use_critic=critic)
    OmegaConf.to_container(config, resolve=True)
    return config, {"reference_policy": reference, "critic": critic}


def optimiser(config):
    """verl's own optimiser and schedule from the options: learning rates by rollout."""
    from verl.utils.torch_functional import get_constant_schedule_with_warmup
    from verl.workers.config.optimizer import build_optimizer

    wanted = omega_conf_to_dataclass(config.actor_rollout_ref.actor.optim)
    parameter = torch.nn.Parameter(torch.zeros(2))
    made = build_optimizer([parameter], wanted)
    steps = wanted.lr_warmup_steps
    schedule = get_constant_schedule_with_warmup(made, num_warmup_steps=steps)
    rates = []
    for _ in range(max(steps, 0) + 3):
        rates.append(made.param_groups[0]["lr"])
        made.step()
        schedule.step()
    group = made.param_groups[0]
    return {
        "class": type(made).__name__,
        "betas": list(group.get("betas", ())),
        "weight_decay": group["weight_decay"],
        "rates": rates,
    }


def losses(config, batches):
    """verl's policy loss and gradient, by the exported options, of given batches."""
    actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    out = []
    for batch in batches:
        old = torch.tensor(batch["old"], dtype=torch.float64)
        new = torch.tensor(batch["new"], dtype=torch.float64, requires_grad=True)
        mask = torch.tensor(batch["mask"]).bool()
        weight = torch.tensor(batch["advantage"], dtype=torch.float64)
        actor.global_batch_info.update(
            {
                "dp_size": 1,
                "batch_num_tokens": mask.sum().item(),
                "global_batch_size": len(mask),
                "loss_scale_factor": actor.loss_scale_factor,
            }
        )
        loss, _ = get_policy_loss_fn(actor.policy_loss.loss_mode)(
            old, new, weight[:, None].expand_as(new), mask, actor.loss_agg_mode, actor
        )
        loss.backward()
        out.append({"loss": loss.item(), "gradient": new.grad.tolist()})
    return out


def rewards(config, cases):
    """The exported reward file through verl's loader and its DAPO reward manager."""
    from verl.experimental.reward_loop.reward_manager.dapo import DAPORewardManager
    from verl.trainer.ppo.reward import get_custom_reward_fn

    function = get_custom_reward_fn(config)
    out = []

    async def ask(case):
        import numpy as np
        from tensordict import TensorDict
        from verl import DataProto

        tokenizer = types.SimpleNamespace(decode=lambda *_, **__: case["response"])
        manager = DAPORewardManager(config, tokenizer, function)
        manager.loop = asyncio.get_running_loop()
        length = case["length"]
        tensors = TensorDict(
            {
                "prompts": torch.ones(1, 1, dtype=torch.long),
                "responses": torch.ones(1, length, dtype=torch.long),
                "attention_mask": torch.ones(1, 1 + length, dtype=torch.long),
            },
            batch_size=1,
        )
        plain = {
            "reward_model": np.array([{"ground_truth": case["answer"]}], dtype=object),
            "data_source": np.array(["x"], dtype=object),
        }
        return await manager.run_single(
            DataProto(batch=tensors, non_tensor_batch=plain)
        )

    for case in cases:
        made = asyncio.run(ask(case))
        out.append(
            {
                "reward": float(made["reward_score"]),
                "acc": float(made["reward_extra_info"]["acc"]),
            }
        )
    return out


def data(config):
    """The exported Parquet through verl's data set: rows kept and one of them."""
    from verl.utils.dataset.rl_dataset import RLHFDataset

    model = omega_conf_to_dataclass(config.actor_rollout_ref.model)
    tokenizer = model.tokenizer
    made = RLHFDataset(str(config.data.train_files), tokenizer, config.data)
    row = made[0]
    shown = tokenizer.apply_chat_template(
        row["raw_prompt"], add_generation_prompt=True, tokenize=False
    )
    return {
        "rows": len(made),
        "ground_truth": row["reward_model"]["ground_truth"],
        "prompt": shown,
    }


def main():
    """Answer a request on standard input."""
    request = json.load(sys.stdin)
    try:
        config, facts = composed(request["words"])
    except Exception as error:
        print("RESULT " + json.dumps({"refused": f"{type(error).__name__}: {error}"}))
        return
    found = {
        "versions": {n: version(n) for n in ("verl", "torch", "hydra-core")},
        **facts,
    }
    actor = config.actor_rollout_ref.actor
    found["values"] = {
        "clip": [actor.clip_ratio_low, actor.clip_ratio_high],
        "reduction": actor.loss_agg_mode,
        "filter": [
            config.algorithm.filter_groups.enable,
            config.algorithm.filter_groups.metric,
        ],
        "use_v1": config.trainer.use_v1,
    }
    found["optimiser"] = optimiser(config)
    found["losses"] = losses(config, request.get("batches", []))
    if "rewards" in request:
        found["rewards"] = rewards(config, request["rewards"])
    if request.get("data"):
        found["data"] = data(config)
    print("RESULT " + json.dumps(found))


if __name__ == "__main__":
    main()
