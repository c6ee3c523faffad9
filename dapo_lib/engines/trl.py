"""Dynamic sampling for TRL: a GRPOTrainer that refills groups without signal.

TRL has no such option. Sampling and scoring stay TRL's; which groups are kept, in what
order, how often to refill and what it cost is the DynamicSampler of our own loop
(dapo_lib/sampling.py), run alike on every process.
Two conventions of the paper come with it: advantages are computed after filtering, and
each update divides by its own tokens, all processes together.
Left out: images, tools, and vLLM's correction of log-probabilities. Needs the extra
`trl` (tested with TRL 1.16.0).
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import trl
from accelerate.utils import DistributedType, gather_object
from torch import Tensor
from torch.nn.functional import pad

from dapo_lib.advantage import group_advantages
from dapo_lib.data.order import drawn
from dapo_lib.engines.table import table
from dapo_lib.errors import BadInput, expect
from dapo_lib.files import write_bytes
from dapo_lib.rollout import Prompts, Rollout
from dapo_lib.sampling import DynamicSampler, Ledger

STATE = "dynamic_sampling.json"
WHOLE = "trainer_state.json"  # what TRL writes last into a checkpoint
SHOWN = (
    "rounds", "prompts_drawn", "all_right", "all_wrong", "kept", "surplus",
    "tokens_generated", "tokens_used",
)  # fmt: skip


def check_world(args: Any, devices: int) -> None:
    """Raise ``BadInput`` where another number of processes runs than was planned.

    A launcher that was told of no device starts one process without a word, and the
    batch would be another. Says so where accelerate takes DDP for FSDP, as on CPUs.
    """
    world = args.world_size
    expect(world == devices, "processes", world, f"{devices}, as the run was exported")
    asked = os.environ.get("ACCELERATE_USE_FSDP", "").lower() == "true"
    if asked and args.process_index == 0:
        kind = args.distributed_state.distributed_type
        if kind in (DistributedType.NO, DistributedType.MULTI_CPU):
            print("FSDP: accelerate shards on GPUs only; here every process has it all")


def newest_checkpoint(args: Any, arguments: Sequence[str] | None = None) -> str | None:
    """The newest whole checkpoint if the script was given ``--resume``, else None.

    A checkpoint that a killed run left half written is passed over; without a whole one
    the run starts anew. Raises ``BadInput`` on other arguments.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given not in ([], ["--resume"]):
        raise BadInput(f"arguments: got {given}, expected none or --resume")
    folders = Path(args.output_dir).glob("checkpoint-*") if given else ()
    whole = [f for f in folders if (f / WHOLE).is_file()]
    newest = max(whole, key=lambda f: int(f.name.partition("-")[2]), default=None)
    return None if newest is None else str(newest)


class DynamicSamplingGRPOTrainer(trl.GRPOTrainer):
    """GRPOTrainer whose every batch holds groups with 0 < right < group size only.

    The first reward function is the rule reward (above 0: right); the filter reads it
    alone, never a shaped sum. `max_rounds`, `on_exhausted` (``error`` or ``partial``)
    and `oversample` as in :class:`DynamicSampler`. Prompts come from the data set in an
    order that `args.seed` fixes; the cursor and the run's ledger are saved with every
    checkpoint. They are drawn in multiples of `draw_multiple` (the number of
    processes), what is too much is surplus: with a multiple given, the number of
    processes changes nothing. `ledger` is the last batch's, `total` the run's.
    """

    def __init__(
        self,
        *args: Any,
        max_rounds: int = 10,
        on_exhausted: str = "error",
        oversample: float = 1.0,
        advantage_eps: float = 1e-6,
        draw_multiple: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        _check_version()
        world = self.accelerator.num_processes
        self.draw_multiple = draw_multiple or world
        wanted = f"a multiple of the {world} processes"
        expect(self.draw_multiple % world == 0, "draw_multiple", draw_multiple, wanted)
        self._check_options(on_exhausted)
        self.advantage_eps = advantage_eps
        rows = self.args.generation_batch_size
        self.sampler = DynamicSampler(
            rows // self.num_generations,
            self.num_generations,
            max_rounds=max_rounds,
            on_exhausted=on_exhausted,
            oversample=oversample,
        )
        self.cursor = 0
        self.ledger: Ledger | None = None
        self.total = Ledger.empty(1, self.num_generations)
        self._shaped: dict[int, Tensor] = {}
        self._prompt_ids: dict[int, list[int]] = {}

    def _check_options(self, on_exhausted: str) -> None:
        wanted = "error or partial; TRL cannot skip a step"
        expect(on_exhausted != "skip", "on_exhausted", on_exhausted, wanted)
        args = self.args
        corrected = args.use_vllm and args.vllm_importance_sampling_correction
        name = "vllm_importance_sampling_correction"
        expect(not corrected, name, True, "False: its ratios are not carried along")
        text = not (self.tools or self.environments or self._is_vlm)
        expect(text, "model", "images or tools", "a model and prompts of text alone")
        sized = hasattr(self.train_dataset, "__len__")
        expect(sized, "train_dataset", "a stream", "a data set with a length")
        mean = args.loss_type in ("dapo", "cispo") or on_exhausted == "error"
        wanted = "loss_type='dapo': other means count the missing rows"
        expect(mean, "on_exhausted", on_exhausted, wanted)
        updates = args.steps_per_generation * self.num_iterations
        updates = max(updates // args.gradient_accumulation_steps, 1)
        whole = args.save_steps >= 1  # below, it is a share of the run
        if args.save_strategy == "steps" and whole and args.save_steps % updates:
            warnings.warn(
                f"save_steps={args.save_steps:g}: a run resumed in the middle of a "
                "batch drops the rest of it; take a multiple of its "
                f"{updates} updates",
                stacklevel=3,
            )

    def _generate_and_score_completions(self, inputs: list[Any]) -> dict[str, Any]:
        """A full batch of groups with signal; this process's share of its rows."""
        if not self.model.training:
            return super()._generate_and_score_completions(inputs)
        self._shaped.clear()
        self._prompt_ids.clear()
        batch, self.ledger = self.sampler.fill(self._draw, self._roll_out)
        self.total = self.total + self.ledger
        self._log_ledger(self.ledger)
        return self._share(batch, len(inputs))

    def _draw(self, need: Tensor) -> Prompts:
        """The next prompts, so many that every process has as much to do."""
        count = -(-int(need[0]) // self.draw_multiple) * self.draw_multiple
        cursor, seed = self.cursor, self.args.seed
        self.cursor += count
        size = len(self.train_dataset)
        return drawn(cursor, count, size, lambda epoch: seed + epoch)

    def _roll_out(self, prompts: Prompts) -> Rollout:
        """TRL samples and scores this process's groups; all see all of them."""
        share = len(prompts) // self.accelerator.num_processes
        first = self.accelerator.process_index * share
        mine = [
            self.train_dataset[int(row)]
            for row in prompts.index[first : first + share]
            for _ in range(self.num_generations)
        ]
        local = super()._generate_and_score_completions([dict(x) for x in mine])
        each = (prompts.index, prompts.group_id, prompts.lane)
        index, group_id, lane = (
            x.repeat_interleave(self.num_generations) for x in each
        )
        found = self._gathered(local)
        self._remember(prompts, found.pop("prompt_ids"))
        rule = self._rewards[:, 0].double().cpu()
        valid = ~rule.isnan()  # TRL's mark for "no verdict"
        return Rollout(index, group_id, lane, **found).graded(
            (rule > 0).long(), rule.nan_to_num(), valid
        )

    def _remember(self, prompts: Prompts, ids: list[list[int]]) -> None:
        """Shaped rewards and prompt ids of every group, until the batch is full."""
        weights = self.reward_weights.to(self._rewards)
        total = (self._rewards * weights).nansum(1).double().cpu()
        each = total.view(-1, self.num_generations)
        for i, group in enumerate(prompts.group_id.tolist()):
            self._shaped[group] = each[i]
            self._prompt_ids[group] = ids[i * self.num_generations]

    def _calculate_rewards(self, inputs: Any, prompts: Any, texts: Any, ids: Any):
        self._lengths = [len(row) for row in ids]
        self._rewards = super()._calculate_rewards(inputs, prompts, texts, ids)
        return self._rewards

    def _gathered(self, local: dict[str, Any]) -> dict[str, Any]:
        """The rows of all processes, in order, on the CPU."""
        ids = [
            row[keep.bool()].tolist()
            for row, keep in zip(local["prompt_ids"], local["prompt_mask"], strict=True)
        ]
        tokens, mask = local["completion_ids"], local["completion_mask"].bool()
        old = local.get("old_per_token_logps")
        old = torch.zeros(tokens.shape, device=tokens.device) if old is None else old
        lengths = torch.tensor(self._lengths, device=tokens.device)
        room = int(self.accelerator.gather(lengths).max()) - tokens.shape[1]
        parts = {
            "tokens": pad(tokens, (0, room), value=self._tokenizer.pad_token_id),
            "mask": pad(mask, (0, room), value=False),
            "log_prob_old": pad(old, (0, room)),
            "length": lengths,
        }
        whole = {k: self.accelerator.gather(v).cpu() for k, v in parts.items()}
        ends = torch.isin(whole["tokens"], torch.tensor([*self.eos_token_ids]))
        written = torch.arange(ends.shape[1]) < whole["length"][:, None]
        whole["truncated"] = ~(ends & written).any(1)
        return {**whole, "prompt_ids": gather_object(ids)}

    def _share(self, batch: Rollout | None, rows: int) -> dict[str, Any]:
        """This process's rows of the whole batch, as TRL's buffer wants them."""
        device = self.accelerator.device
        first = self.accelerator.process_index * rows
        if batch is None:
            return self._filler(rows, device)
        groups = batch.group_id.view(-1, self.num_generations)[:, 0].tolist()
        reward = torch.cat([self._shaped[g] for g in groups])
        advantage = group_advantages(
            reward,
            batch.group_id,
            eps=self.advantage_eps,
            scale=self.scale_rewards,
        )
        which = torch.arange(len(batch))[first : first + rows]
        if not len(which):
            return self._filler(rows, device)
        mine, weight = batch.rows(which), advantage[which]
        prompts = [self._prompt_ids[g] for g in mine.group_id.tolist()]
        return self._padded(mine, weight, prompts, rows, device)

    def _padded(
        self, mine: Rollout, weight: Tensor, prompts: list, rows: int, device: Any
    ) -> dict[str, Any]:
        """Tensors of `rows` rows; missing ones repeat the first, fully masked."""
        missing = rows - len(mine)
        take = torch.cat([torch.arange(len(mine)), torch.zeros(missing).long()])
        real = torch.arange(rows) < len(mine)
        width = max(map(len, prompts))
        filler = self._tokenizer.pad_token_id
        ids = torch.tensor([[filler] * (width - len(p)) + p for p in prompts])
        seen = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
        mask = (mine.mask[take] & real[:, None]).long()
        out = {
            "prompt_ids": ids[take],
            "prompt_mask": seen[take],
            "completion_ids": mine.tokens[take],
            "completion_mask": mask,
            "advantages": (weight[take] * real).float(),
            "num_items_in_batch": torch.tensor(0.0),
        }
        if self._keeps_old:
            out["old_per_token_logps"] = mine.log_prob_old[take]
        return {k: v.to(device) for k, v in out.items()}

    def _filler(self, rows: int, device: Any) -> dict[str, Any]:
        """Rows that no loss sees, where this process has no group at all."""
        one = torch.tensor([[self.eos_token_ids[0]]])
        empty = Rollout(
            index=torch.zeros(1).long(), group_id=torch.zeros(1).long(),
            lane=torch.zeros(1).long(), tokens=one, mask=torch.zeros(1, 1).bool(),
            length=torch.zeros(1).long(), truncated=torch.ones(1).bool(),
            log_prob_old=torch.zeros(1, 1),
        )  # fmt: skip
        return self._padded(empty, torch.zeros(1), one.tolist(), rows, device)

    @property
    def _keeps_old(self) -> bool:
        every = self.args.steps_per_generation * self.num_iterations
        return self.args.gradient_accumulation_steps % every != 0

    def _prepare_inputs(self, generation_batch: Any) -> dict[str, Any]:
        """TRL's, then every update's own token count as its denominator."""
        before = self._buffered_inputs
        out = super()._prepare_inputs(generation_batch)
        if self.model.training and self._buffered_inputs is not before:
            self._count_windows(self._buffered_inputs)
        return out

    def _count_windows(self, slices: list[dict[str, Any]]) -> None:
        """TRL divides by num_items x accumulation / slices; make that the window's."""
        size = self.args.gradient_accumulation_steps
        for at in range(0, len(slices), size):
            window = slices[at : at + size]
            mine = sum(x["completion_mask"].sum() for x in window)
            whole = self.accelerator.reduce(mine.float(), reduction="sum")
            for x in window:
                x["num_items_in_batch"] = whole * len(slices) / size

    def _log_ledger(self, ledger: Ledger) -> None:
        metrics = self._metrics["train"]
        for name in SHOWN:
            metrics[f"dynamic_sampling/{name}"].append(float(getattr(ledger, name)[0]))
        for side in ("all", "kept"):
            count = float(getattr(ledger, f"responses_{side}")[0])
            reward = float(getattr(ledger, f"reward_{side}")[0])
            if count:
                metrics[f"dynamic_sampling/reward_{side}"].append(reward / count)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        folder = Path(self.args.output_dir) / f"checkpoint-{self.state.global_step}"
        if self.args.should_save:  # first: TRL's last file says that all are there
            total = {
                k: torch.as_tensor(v).tolist() for k, v in vars(self.total).items()
            }
            plain = {"cursor": self.cursor, "total": total}
            write_bytes(folder / STATE, json.dumps(plain).encode())
        super()._save_checkpoint(model, trial)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        path = Path(checkpoint or ".") / STATE
        if checkpoint is None:
            return
        if not path.is_file():
            raise BadInput(f"{path}: missing; this checkpoint has no dynamic sampling")
        saved = json.loads(path.read_text())
        self.cursor = int(saved["cursor"])
        exhausted = bool(saved["total"].pop("exhausted"))
        sums = {k: torch.tensor(v).double() for k, v in saved["total"].items()}
        self.total = Ledger(**sums, exhausted=exhausted)


def _check_version() -> None:
    tested = table()["tested"]["trl"]
    if trl.__version__ != tested:
        warnings.warn(
            f"TRL {trl.__version__}: dynamic sampling was tested with {tested}",
            stacklevel=3,
        )
