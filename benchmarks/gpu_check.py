"""Work A on a GPU: a Hugging Face policy in our loop against TRL's GRPOTrainer there.

`python -m benchmarks.gpu_check [--device cuda] [--cycles N]`, where TRL is installed;
says so and ends well where there is no GPU. Prints paired ratios of wall seconds, the
device synchronised. Left out: vLLM, several devices and bfloat16.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from benchmarks.addition import Addition, checkpoint
from benchmarks.ratios import WORKS
from dapo_lib.algorithm import Algorithm
from dapo_lib.lm.huggingface import HuggingFacePolicy
from dapo_lib.train import Schedule, start, train

ALGORITHM = Algorithm(dynamic_sampling=False, overlong="none")  # as TRL's side


def clock(device: str) -> float:
    """Wall seconds once the device has done all that was asked of it."""
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter()


def measure(device: str, cycles: int) -> list[float]:
    """Seconds of TRL over ours, one ratio a cycle, taken in turn."""
    from benchmarks.trl_peer import qwen2, run_trl

    work = WORKS[0]
    task = Addition(1, l_max=work.l_max)
    v = task.vocabulary
    model = checkpoint(work.config, work.l_max)
    policy = HuggingFacePolicy(
        qwen2(model, v.eos_id, v.pad_id).to(device),
        lambda index: task.prompts[index].tolist(),
        l_max=work.l_max,
        eos=[v.eos_id],
        pad=v.pad_id,
    )
    schedule = Schedule(
        rollouts=cycles + 1,
        prompts_per_rollout=work.batch * work.updates // work.group_size,
        group_size=work.group_size,
        l_max=work.l_max,
        minibatches=work.updates,
        lr=1e-6,
    )
    state = start(ALGORITHM, schedule, policy, torch.Generator().manual_seed(0))
    steps = train(ALGORITHM, schedule, policy, task, state)
    ours: list[float] = []

    def one_of_ours() -> None:
        began = clock(device)
        next(steps)
        ours.append(clock(device) - began)

    theirs, _ = run_trl(
        model,
        Addition(1, l_max=work.l_max),
        batch=work.batch,
        updates=work.updates,
        group_size=work.group_size,
        l_max=work.l_max,
        cycles=cycles + 1,
        full=work.full,
        between=one_of_ours,
        now=lambda: clock(device),
        use_cpu=device == "cpu",
    )
    return [a / b for a, b in zip(theirs, ours, strict=True)][1:]


def main() -> None:
    """Print the ratio, or that there is no GPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--cycles", type=int, default=5)
    given = parser.parse_args()
    if given.device != "cpu" and not torch.cuda.is_available():
        print("no GPU here: nothing was measured (--device cpu only tries the script)")
        return
    found = measure(given.device, given.cycles)
    name = "cpu" if given.device == "cpu" else torch.cuda.get_device_name()
    print(
        f"{WORKS[0].name} on {name}: TRL / ours {statistics.median(found):.2f} "
        f"[{min(found):.2f}, {max(found):.2f}], {len(found)} paired cycles"
    )


if __name__ == "__main__":
    main()
