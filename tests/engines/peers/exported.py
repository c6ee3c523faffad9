"""The exported `train.py`, as it is, with a record of what it did.

`exported.py RECORD [--stop N] [--fsdp] [--resume]` in the folder of an export: stops
after N updates as a killed run would; `--fsdp` shards on the CPU, where accelerate
would fall back to DDP without a word. Rank 0 writes RECORD (JSON). Left out: judgement.
"""

import argparse
import json
import runpy
import sys
from pathlib import Path

import torch
from accelerate.state import PartialState
from accelerate.utils import DistributedType
from transformers import TrainerCallback

from dapo_lib.engines.trl import DynamicSamplingGRPOTrainer as Trainer


class Stop(TrainerCallback):
    """Ends the run after so many updates, at a checkpoint or not."""

    def __init__(self, after):
        self.after = after

    def on_step_end(self, args, state, control, **_):
        if state.global_step >= self.after:
            control.should_training_stop = True


def shard_on_the_cpu():
    """Several processes on CPUs count as several devices, which accelerate shards."""
    plain = PartialState.__init__

    def init(self, *args, **options):
        plain(self, *args, **options)
        if self._shared_state["distributed_type"] == DistributedType.MULTI_CPU:
            self._shared_state["distributed_type"] = DistributedType.MULTI_GPU

    PartialState.__init__ = init


def recorded(stop):
    """What every trainer draws from now on; it stops after `stop` updates."""
    drawn, draw, train = [], Trainer._draw, Trainer.train

    def _draw(self, need):
        prompts = draw(self, need)
        drawn.append([prompts.group_id.tolist(), prompts.index.tolist()])
        return prompts

    def start(self, **options):
        if stop is not None:
            self.add_callback(Stop(stop))
        return train(self, **options)

    Trainer._draw, Trainer.train = _draw, start
    return drawn


def main():
    """Run the script and write the record."""
    parser = argparse.ArgumentParser()
    parser.add_argument("record", type=Path)
    parser.add_argument("--stop", type=int)
    parser.add_argument("--fsdp", action="store_true")
    given, rest = parser.parse_known_args()
    if given.fsdp:
        shard_on_the_cpu()
    drawn = recorded(given.stop)
    sys.argv = ["train.py", *rest]
    made = runpy.run_path("train.py", run_name="__main__")["trainer"]
    if not made.accelerator.is_main_process:
        return
    total = {k: torch.as_tensor(v).tolist() for k, v in vars(made.total).items()}
    facts = {
        "world": made.accelerator.num_processes,
        "kind": str(made.accelerator.distributed_type.value),
        "sharded": sorted({type(p).__name__ for p in made.model.parameters()}),
        "updates": made.state.global_step,
        "cursor": made.cursor,
        "drawn": drawn,
        "total": total,
    }
    given.record.write_text(json.dumps(facts))


if __name__ == "__main__":
    main()
