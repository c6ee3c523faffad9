"""A small decoder-only transformer on flat tokens; how tokens see each other is a plan.

The same forward trains on packed responses (packing.py) and decodes with a cache
(sampler.py): norms, linears and MLP run on [tokens, width], and `attend` decides who
reads whom. Left out: dropout (it would break the shared prompt), grouped key heads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from dapo_lib.errors import expect

CONTIGUOUS = torch.contiguous_format
# attend(layer, qkv [tokens, 3, heads, dim]) -> [tokens, width]
Attend = Callable[[int, Tensor], Tensor]


class ModelConfig(BaseModel):
    """The shape of a decoder; the defaults are the book's (101 thousand parameters).

    `validated` raises ``BadInput`` where heads do not divide the width.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    vocabulary: int = Field(20, ge=2)
    width: int = Field(64, ge=2)
    layers: int = Field(2, ge=1)
    heads: int = Field(4, ge=1)
    hidden: int = Field(256, ge=1, description="width of the MLP")
    mlp: Literal["relu", "swiglu"] = "relu"
    norm: Literal["layer", "rms"] = "layer"
    norm_eps: float = Field(1e-5, gt=0)
    rope_base: float = Field(1000.0, gt=1)
    positions: int = Field(128, ge=1, description="longest prompt + response")
    qkv_bias: bool = False
    tied: bool = False

    def validated(self) -> ModelConfig:
        """Itself, once the parts fit together.

        >>> ModelConfig(heads=5).validated()
        Traceback (most recent call last):
        dapo_lib.errors.BadInput: heads: got 5, expected a divisor of width=64
        """
        fits = self.width % self.heads == 0
        expect(fits, "heads", self.heads, f"a divisor of width={self.width}")
        even = (self.width // self.heads) % 2 == 0
        wanted = "an even width / heads, as rotary positions pair dimensions"
        expect(even, "heads", self.heads, wanted)
        return self


class Block(nn.Module):
    """One pre-norm transformer block."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        d, h = config.width, config.hidden
        self.config = config
        self.norm_1 = nn.Parameter(torch.ones(d))
        self.norm_2 = nn.Parameter(torch.ones(d))
        self.qkv = nn.Parameter(torch.empty(3 * d, d))
        self.qkv_bias = nn.Parameter(torch.zeros(3 * d)) if config.qkv_bias else None
        self.out = nn.Parameter(torch.empty(d, d))
        gated = config.mlp == "swiglu"
        self.gate = nn.Parameter(torch.empty(h, d)) if gated else None
        self.up = nn.Parameter(torch.empty(h, d))
        self.down = nn.Parameter(torch.empty(d, h))

    def forward(self, x: Tensor, rotation: Tensor, attend: Callable) -> Tensor:
        """x [tokens, width], rotation [tokens, 1, 1, dim / 2] complex -> x's shape."""
        qkv = F.linear(normalise(x, self.norm_1, self.config), self.qkv, self.qkv_bias)
        qkv = rotated(qkv.view(len(x), 3, self.config.heads, -1), rotation)
        x = x + F.linear(attend(qkv), self.out)
        y = normalise(x, self.norm_2, self.config)
        if self.gate is None:
            return x + F.linear(F.relu(F.linear(y, self.up)), self.down)
        gated = F.silu(F.linear(y, self.gate)) * F.linear(y, self.up)
        return x + F.linear(gated, self.down)


class Decoder(nn.Module):
    """Embedding, blocks, final norm, head.

    `generator` draws the weights (normal, 1/sqrt(fan-in), outputs scaled by depth).
    """

    def __init__(
        self, config: ModelConfig, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.config = config.validated()
        self.embedding = nn.Parameter(torch.empty(config.vocabulary, config.width))
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.Parameter(torch.ones(config.width))
        shape = (config.vocabulary, config.width)
        self.head = self.embedding if config.tied else nn.Parameter(torch.empty(shape))
        self._draw_weights(generator)
        table = rotations(config)
        self.register_buffer("rotation", table, persistent=False)

    def _draw_weights(self, generator: torch.Generator | None) -> None:
        depth = (2 * self.config.layers) ** -0.5
        for name, weight in self.named_parameters():
            if weight.ndim == 2:
                scale = depth if name.endswith(("out", "down")) else 1.0
                std = scale * weight.shape[1] ** -0.5
                nn.init.normal_(weight, std=std, generator=generator)

    def forward(self, ids: Tensor, position: Tensor, attend: Attend) -> Tensor:
        """Flat ids and positions [tokens] -> [tokens, width], before the norm."""
        x = F.embedding(ids, self.embedding)
        rotation = self.rotation[position]
        for layer, block in enumerate(self.blocks):
            x = block(x, rotation, lambda qkv, layer=layer: attend(layer, qkv))
        return x

    def logits(self, x: Tensor) -> Tensor:
        """Final norm and head: [tokens, width] -> [tokens, vocabulary]."""
        return F.linear(normalise(x, self.norm, self.config), self.head)


def normalise(x: Tensor, weight: Tensor, config: ModelConfig) -> Tensor:
    """LayerNorm without bias, or RMSNorm, over the last axis."""
    if config.norm == "layer":
        return F.layer_norm(x, weight.shape, weight, None, config.norm_eps)
    if torch.is_grad_enabled():
        return RMSNorm.apply(x, weight, config.norm_eps)
    return (x * inverse_rms(x, config.norm_eps)).mul_(weight)


def inverse_rms(x: Tensor, eps: float) -> Tensor:
    """1 / sqrt(mean x^2 + eps) over the last axis, which stays with size 1."""
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return norm.square_().div_(x.shape[-1]).add_(eps).rsqrt_()


def rotations(config: ModelConfig) -> Tensor:
    """Rotary positions as unit complex numbers, [positions, 1, 1, dim / 2].

    Neighbouring dimensions form a pair (Su et al., arXiv 2104.09864).
    """
    dim = config.width // config.heads
    frequency = config.rope_base ** -(torch.arange(0, dim, 2) / dim)
    angle = torch.arange(config.positions)[:, None] * frequency
    return torch.polar(torch.ones_like(angle), angle)[:, None, None]


def rotated(qkv: Tensor, rotation: Tensor) -> Tensor:
    """Turn queries and keys by their position, in place; values stay.

    Shape: qkv [tokens, 3, heads, dim]; rotation [tokens, 1, 1, dim / 2], complex.
    """
    turn = Rotate.apply if torch.is_grad_enabled() else turn_
    return turn(qkv, rotation)


def turn_(qkv: Tensor, rotation: Tensor) -> Tensor:
    """Multiply neighbouring dimensions of queries and keys as complex numbers."""
    torch.view_as_complex(qkv[:, :2].unflatten(-1, (-1, 2))).mul_(rotation)
    return qkv


class Rotate(torch.autograd.Function):
    """The same under autograd, whose own gradient would copy four times as much."""

    @staticmethod
    def forward(ctx, qkv: Tensor, rotation: Tensor) -> Tensor:
        """The product that made qkv needs it no more."""
        ctx.save_for_backward(rotation)
        ctx.mark_dirty(qkv)
        return turn_(qkv, rotation)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        """The inverse of a rotation is its conjugate."""
        (rotation,) = ctx.saved_tensors
        return turn_(gradient.clone(memory_format=CONTIGUOUS), rotation.conj()), None


class RMSNorm(torch.autograd.Function):
    """x / sqrt(mean x^2 + eps) * weight over the last axis, x [tokens, width].

    Half the passes over memory of the same formula under autograd.
    """

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """Keeps the normalised x and the scale."""
        scale = inverse_rms(x, eps)
        unit = x * scale
        ctx.save_for_backward(unit, scale, weight)
        return unit * weight

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        """The part of the gradient along x is taken out, as its length is fixed."""
        unit, scale, weight = ctx.saved_tensors
        inner = gradient * weight
        along = (inner * unit).mean(-1, keepdim=True)
        return (inner - unit * along) * scale, (gradient * unit).sum(0), None
