"""A Qwen2 checkpoint in our packed decoder, and back: the same function, other names.

Left out: grouped key heads and sliding windows, which our decoder does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from dapo_lib.errors import expect
from dapo_lib.lm.model import Decoder, ModelConfig


def config_of(qwen2: Any, *, positions: int | None = None) -> ModelConfig:
    """Our configuration of a transformers ``Qwen2Config``.

    Raises ``ValueError`` where it has grouped key heads.
    """
    heads, kv = qwen2.num_attention_heads, qwen2.num_key_value_heads
    expect(heads == kv, "num_key_value_heads", kv, f"{heads}, as many as heads")
    rope = getattr(qwen2, "rope_parameters", None) or {}
    return ModelConfig(
        vocabulary=qwen2.vocab_size,
        width=qwen2.hidden_size,
        layers=qwen2.num_hidden_layers,
        heads=heads,
        hidden=qwen2.intermediate_size,
        mlp="swiglu",
        norm="rms",
        norm_eps=qwen2.rms_norm_eps,
        rope_base=rope.get("rope_theta", getattr(qwen2, "rope_theta", 10_000.0)),
        positions=positions or qwen2.max_position_embeddings,
        qkv_bias=True,
        tied=qwen2.tie_word_embeddings,
    )


def from_qwen2(model: Any, *, positions: int | None = None) -> Decoder:
    """A decoder with the weights of a transformers ``Qwen2ForCausalLM``."""
    ours = Decoder(config_of(model.config, positions=positions))
    ours.load_state_dict(our_state(model.state_dict(), ours.config))
    return ours


def our_state(theirs: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """Weights under our names: queries, keys, values fused, rotary pairs adjacent."""
    pairs = _adjacent_pairs(config)
    state = {
        "embedding": theirs["model.embed_tokens.weight"],
        "norm": theirs["model.norm.weight"],
    }
    state["head"] = state["embedding"] if config.tied else theirs["lm_head.weight"]
    for layer in range(config.layers):
        old, new = f"model.layers.{layer}.", f"blocks.{layer}."
        for end, name in (("weight", "qkv"), ("bias", "qkv_bias")):
            q, k, v = (theirs[f"{old}self_attn.{x}_proj.{end}"] for x in "qkv")
            state[new + name] = torch.cat([q[pairs], k[pairs], v])
        for ours, name in _SAME.items():
            state[new + ours] = theirs[old + name]
    return state


def their_state(model: Decoder) -> dict[str, Tensor]:
    """The inverse of :func:`our_state`, for ``Qwen2ForCausalLM.load_state_dict``."""
    config, ours = model.config, model.state_dict()
    halves = torch.argsort(_adjacent_pairs(config))
    state = {
        "model.embed_tokens.weight": ours["embedding"],
        "model.norm.weight": ours["norm"],
        "lm_head.weight": ours["head"],
    }
    for layer in range(config.layers):
        old, new = f"model.layers.{layer}.", f"blocks.{layer}."
        for end, name in (("weight", "qkv"), ("bias", "qkv_bias")):
            q, k, v = ours[new + name].chunk(3)
            for letter, part in (("q", q[halves]), ("k", k[halves]), ("v", v)):
                state[f"{old}self_attn.{letter}_proj.{end}"] = part
        for name, there in _SAME.items():
            state[old + there] = ours[new + name]
    return state


_SAME = {
    "out": "self_attn.o_proj.weight",
    "gate": "mlp.gate_proj.weight",
    "up": "mlp.up_proj.weight",
    "down": "mlp.down_proj.weight",
    "norm_1": "input_layernorm.weight",
    "norm_2": "post_attention_layernorm.weight",
}


def _adjacent_pairs(config: ModelConfig) -> Tensor:
    """Rows that bring dimension i and i + dim/2 of every head side by side, [width]."""
    dim = config.width // config.heads
    within = torch.arange(dim).view(2, -1).t().flatten()
    return (torch.arange(config.heads)[:, None] * dim + within).flatten()
