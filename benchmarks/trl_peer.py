"""TRL's GRPOTrainer on the bench's work: same weights, prompts, reward and updates.

Left out: anything that would slow TRL for a reason of ours. Evaluation, logging, saving
and progress bars are off; bf16 and checkpointing too, as on a CPU they cost time.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable

import torch
from datasets import Dataset
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    TrainerCallback,
)
from trl import GRPOConfig, GRPOTrainer

from benchmarks.addition import Addition
from dapo_lib.lm.model import Decoder
from dapo_lib.lm.qwen2 import their_state


def qwen2(model: Decoder, eos: int, pad: int) -> Qwen2ForCausalLM:
    """The same function as a transformers model."""
    c = model.config
    theirs = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=c.vocabulary,
            hidden_size=c.width,
            num_hidden_layers=c.layers,
            num_attention_heads=c.heads,
            num_key_value_heads=c.heads,
            intermediate_size=c.hidden,
            rms_norm_eps=c.norm_eps,
            rope_theta=c.rope_base,
            max_position_embeddings=c.positions,
            tie_word_embeddings=c.tied,
            eos_token_id=eos,
            pad_token_id=pad,
            bos_token_id=None,
        )
    )
    theirs.load_state_dict(their_state(model))
    return theirs


def tokenizer(task: Addition) -> PreTrainedTokenizerFast:
    """Characters as tokens, with the task's ids."""
    v = task.vocabulary
    ids = {symbol: i for i, symbol in enumerate(v.symbols)}
    raw = Tokenizer(models.WordLevel(ids, unk_token=v.pad))
    raw.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    raw.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token=v.eos, pad_token=v.pad, padding_side="left"
    )


class Clock(TrainerCallback):
    """Seconds of every cycle of `updates` steps by `now`; runs `between` after each."""

    def __init__(
        self, updates: int, between: Callable[[], None], now: Callable[[], float]
    ) -> None:
        self.updates, self.between, self.now = updates, between, now
        self.seconds: list[float] = []

    def on_train_begin(self, args, state, control, **_):
        """Start the clock."""
        self.began = self.now()

    def on_step_end(self, args, state, control, **_):
        """Stop it at the end of a cycle, let the other side run, start it again."""
        if state.global_step % self.updates == 0:
            self.seconds.append(self.now() - self.began)
            self.between()
            self.began = self.now()


def run_trl(
    model: Decoder,
    task: Addition,
    *,
    batch: int,
    updates: int,
    group_size: int,
    l_max: int,
    cycles: int,
    full: bool,
    between: Callable[[], None],
    now: Callable[[], float] = time.process_time,
    use_cpu: bool = True,
) -> tuple[list[float], list[float]]:
    """Seconds of every cycle by `now`, and mean lengths as TRL gave them to reward."""
    v = task.vocabulary
    texts = [{"prompt": v.decode(p)} for p in task.prompts]
    lengths: list[float] = []

    def reward(completion_ids, **_) -> list[float]:
        lengths.append(sum(map(len, completion_ids)) / len(completion_ids))
        return [float(len(ids) % 2) for ids in completion_ids]

    suppress = {"suppress_tokens": [v.eos_id]} if full else {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = GRPOConfig(
            output_dir=folder,
            per_device_train_batch_size=batch,
            steps_per_generation=updates,
            num_generations=group_size,
            max_completion_length=l_max,
            max_steps=cycles * updates,
            loss_type="dapo",
            epsilon=0.2,
            epsilon_high=0.28,
            beta=0.0,
            temperature=1.0,
            top_p=1.0,
            top_k=0,
            learning_rate=1e-6,
            lr_scheduler_type="constant",
            max_grad_norm=1.0,
            bf16=False,
            gradient_checkpointing=False,
            use_cpu=use_cpu,
            report_to=[],
            logging_strategy="no",
            save_strategy="no",
            disable_tqdm=True,
            generation_kwargs=suppress,
        )
        clock = Clock(updates, between, now)
        trainer = GRPOTrainer(
            qwen2(model, v.eos_id, v.pad_id),
            reward_funcs=reward,
            args=config,
            train_dataset=Dataset.from_list(texts),
            processing_class=tokenizer(task),
            callbacks=[clock],
        )
        torch.manual_seed(0)
        trainer.train()
    return clock.seconds, lengths
