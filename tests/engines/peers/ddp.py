"""The exported trainer on given completions, in one process or several; weights out.

`torchrun --nproc_per_node N ddp.py FOLDER OUT [SEED]`: FOLDER is tiny.py's; rank 0
writes OUT (torch) with weights before and after, ledgers and the world size.
Completions depend on the prompt and their place in its group alone. Left out: sampling.
"""

import json
import random
import sys
import warnings
from collections import defaultdict
from pathlib import Path

import torch
from trl import GRPOConfig
from trl.rewards import get_soft_overlong_punishment

from dapo_lib.engines.rewards import RuleReward, read_problems
from dapo_lib.engines.trl import DynamicSamplingGRPOTrainer

warnings.simplefilter("ignore")
PROMPTS, GROUP, L_MAX, ROWS = 8, 4, 24, 32


def completions(prompts, trainer):
    """Two right and two wrong of each group; every fourth prompt is all wrong."""
    tokenizer = trainer.processing_class
    seen = defaultdict(int)
    out = {"prompt_ids": [], "completion_ids": [], "logprobs": []}
    for prompt in prompts:
        place = seen[prompt] % GROUP
        seen[prompt] += 1
        chance = random.Random(f"{prompt} {place}")
        right = place < 2 and len(prompt) != 4
        digit = prompt[0] if right else str(1 - int(prompt[0]))
        text = (
            "0" * chance.randrange(15) + digit + ("$" if chance.random() < 0.9 else "")
        )
        out["prompt_ids"].append(tokenizer(prompt)["input_ids"])
        out["completion_ids"].append(tokenizer(text)["input_ids"])
        out["logprobs"].append([-1.0] * len(text))
    return out


def trainer(folder, out, *, world, updates=1, iterations=3, rollouts=3, **options):
    """The trainer that an export writes, small, with given completions."""
    args = GRPOConfig(
        output_dir=str(out),
        use_cpu=True,
        report_to="none",
        logging_strategy="no",
        save_strategy="no",
        disable_tqdm=True,
        remove_unused_columns=False,
        model_init_kwargs={"dtype": options.pop("dtype", "float32")},
        per_device_train_batch_size=4,
        gradient_accumulation_steps=ROWS // updates // 4 // world,
        steps_per_generation=ROWS // 4 // world,
        num_generations=GROUP,
        num_iterations=iterations,
        max_completion_length=L_MAX,
        max_steps=rollouts * iterations * updates,
        learning_rate=1e-3,
        lr_scheduler_type="constant",
        weight_decay=0.1,
        epsilon=0.2,
        epsilon_high=0.28,
        loss_type="dapo",
        beta=0.0,
        bf16=False,
        gradient_checkpointing=False,
        seed=3,
    )
    assert args.world_size == world, args.world_size
    problems = read_problems(
        str(Path(folder) / "problems.jsonl"),
        model=str(Path(folder) / "model"),
        chat=False,
        max_prompt=64,
    )
    return DynamicSamplingGRPOTrainer(
        model=str(Path(folder) / "model"),
        args=args,
        reward_funcs=[RuleReward(), get_soft_overlong_punishment(L_MAX, 12)],
        train_dataset=problems,
        rollout_func=completions,
        **options,
    )


def main(folder, out):
    """Train; rank 0 writes what happened."""
    world = int(__import__("os").environ.get("WORLD_SIZE", "1"))
    made = trainer(
        folder, Path(out).parent / f"run{world}", world=world, draw_multiple=2
    )
    before = [p.detach().clone() for p in made.model.parameters()]
    ledgers = []
    original = made._log_ledger
    made._log_ledger = lambda ledger: (ledgers.append(ledger), original(ledger))
    made.train()
    if made.accelerator.is_main_process:
        after = [p.detach() for p in made.model.parameters()]
        names = ("prompts_drawn", "kept", "all_wrong", "surplus", "tokens_used")
        books = [{n: float(getattr(x, n)[0]) for n in names} for x in ledgers]
        facts = {"world": made.accelerator.num_processes, "ledgers": books}
        torch.save({"before": before, "after": after, "facts": json.dumps(facts)}, out)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
