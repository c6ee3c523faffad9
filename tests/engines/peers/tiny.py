"""A tiny Qwen2 with a tokenizer, and problems, in a folder; runs where transformers is.

`python tiny.py FOLDER`: FOLDER/model and FOLDER/problems.jsonl. Left out: any training.
"""

import json
import sys
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

SYMBOLS = "01=_$"  # two digits, so that chance alone is right now and then
PAD, EOS = "_", "$"


def tokenizer():
    """Characters as tokens."""
    ids = {symbol: i for i, symbol in enumerate(SYMBOLS)}
    raw = Tokenizer(models.WordLevel(ids, unk_token=PAD))
    raw.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    raw.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token=EOS, pad_token=PAD, padding_side="left"
    )


def model(seed=0, dtype=torch.float32):
    """Random weights that say nothing, of any length."""
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(SYMBOLS),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=48,
        max_position_embeddings=128,
        bos_token_id=None,
        eos_token_id=SYMBOLS.index(EOS),
        pad_token_id=SYMBOLS.index(PAD),
        initializer_range=0.05,
        tie_word_embeddings=False,
    )
    return Qwen2ForCausalLM(config).to(dtype)


def problems(count=64):
    """Questions `01=`, of different lengths; the answer is the first digit."""
    generator = torch.Generator().manual_seed(0)
    rows = []
    for i in range(count):
        digits = torch.randint(2, (2 + i % 4,), generator=generator).tolist()
        text = "".join(map(str, digits))
        rows.append({"question": f"{text}=", "answer": text[0]})
    return rows


def write(folder):
    """Model, tokenizer and problems."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    model().save_pretrained(folder / "model")
    tokenizer().save_pretrained(folder / "model")
    lines = [json.dumps(row) for row in problems()]
    (folder / "problems.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write(sys.argv[1])
