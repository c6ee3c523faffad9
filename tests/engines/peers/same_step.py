"""Ours and TRL on the same model and batches: loss and gradient of every update.

`python same_step.py FOLDER`: prints JSON, the largest relative differences over all
updates of some rollouts. Left out: the optimiser, which is PyTorch's on both sides.
"""

import json
import sys
import warnings

import torch
from ddp import GROUP, L_MAX, trainer

from dapo_lib.algorithm import Algorithm
from dapo_lib.lm.huggingface import HuggingFacePolicy
from dapo_lib.objective import policy_loss
from dapo_lib.rollout import Rollout
from dapo_lib.train import Schedule, shaped_reward

warnings.simplefilter("ignore")


def gradient(model):
    """All gradients in one vector."""
    parts = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
    return torch.cat(parts).clone()


def theirs(made, window):
    """TRL's loss and gradient of one accumulation window."""
    made.model.train()  # our policy scores without dropout, in evaluation mode
    made.model.zero_grad()
    total = 0.0
    for inputs in window:
        loss = made.compute_loss(made.model, inputs)
        loss.backward()
        total += loss.item()
    return total, gradient(made.model)


def ours(made, window, algorithm, schedule):
    """Our loss and gradient of the same rows, advantages computed by us too."""
    rows, prompts = [], []
    for x in window:
        for i in range(len(x["completion_ids"])):
            prompts.append(x["prompt_ids"][i][x["prompt_mask"][i].bool()].tolist())
            rows.append({k: x[k][i] for k in KEPT if k in x})
    width = max(len(r["completion_ids"]) for r in rows)
    stacked = {k: torch.stack([pad(r[k], width) for r in rows]) for k in rows[0]}
    mask = stacked["completion_mask"].bool()
    index = torch.arange(len(rows))
    batch = Rollout(
        index, index, index * 0, stacked["completion_ids"], mask, mask.sum(1),
        ~mask.any(1), stacked["old_per_token_logps"],
    )  # fmt: skip
    policy = HuggingFacePolicy(
        made.model, lambda i: [prompts[j] for j in i.tolist()], l_max=L_MAX, eos=[4],
        pad=3,
    )  # fmt: skip
    made.model.zero_grad()
    loss, _ = policy_loss(
        policy.log_prob(batch),
        batch.log_prob_old,
        stacked["advantages"],
        mask,
        eps_low=algorithm.eps_low,
        eps_high=algorithm.eps_high,
        dual_clip=algorithm.dual_clip,
    )
    loss.backward()
    return loss.item(), gradient(made.model)


KEPT = ("completion_ids", "completion_mask", "old_per_token_logps", "advantages")


def pad(row, width):
    """A row as long as the longest."""
    if row.ndim == 0:
        return row
    return torch.nn.functional.pad(row, (0, width - len(row)))


def worst_advantage(made, algorithm, schedule):
    """Shaped reward and advantage of our loop on the trainer's own batch."""
    from dapo_lib.train import advantages

    kept = {}
    made._share, share = (
        (lambda batch, rows: kept.update(batch=batch) or share(batch, rows)),
        made._share,
    )
    out = made._generate_and_score_completions([None] * 32)
    want = advantages(algorithm, schedule, kept["batch"])
    reward = shaped_reward(algorithm, schedule, kept["batch"])
    shaped = torch.cat(
        [made._shaped[g] for g in kept["batch"].group_id[::GROUP].tolist()]
    )
    return max(
        float((out["advantages"].cpu() - want).abs().max()),
        float((reward - shaped).abs().max()),
    )


def main(folder):
    """Compare and print."""
    dtype = sys.argv[2] if len(sys.argv) > 2 else "float64"
    made = trainer(
        folder, "/nonexistent", world=1, updates=4, iterations=1, draw_multiple=2,
    )  # fmt: skip
    made.model.to(getattr(torch, dtype)).train()
    algorithm = Algorithm(l_cache=12)
    schedule = Schedule(l_max=L_MAX, group_size=GROUP)
    found = {"advantage": worst_advantage(made, algorithm, schedule)}
    found |= {"loss": 0.0, "gradient": 0.0, "updates": 0, "clipped": 0}
    for rollout in range(3):
        made._step = rollout * made.args.steps_per_generation
        made.current_gradient_accumulation_steps = made.args.gradient_accumulation_steps
        made._buffered_inputs = None
        made.model.train()
        made._prepare_inputs([None] * 32)
        size = made.args.gradient_accumulation_steps
        slices = made._buffered_inputs
        for at in range(0, len(slices), size):
            window = slices[at : at + size]
            a, ga = theirs(made, window)
            b, gb = ours(made, window, algorithm, schedule)
            found["loss"] = max(found["loss"], abs(a - b) / max(abs(a), 1e-3))
            difference = float((ga - gb).norm() / ga.norm())
            found["gradient"] = max(found["gradient"], difference)
            found["updates"] += 1
            with torch.no_grad():  # a large step, so that later windows are clipped
                for p in made.model.parameters():
                    p -= 0.5 * p.grad
        logged = made._metrics["train"]["clip_ratio/region_mean"]
        found["clipped"] = max(found["clipped"], max(logged))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
