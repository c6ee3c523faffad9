"""What a DAPO run costs on a cluster: tokens, FLOPs, seconds, memory, by named fields.

A floor, not a forecast: one phase after another, each at an assumed share of what the
device can do. Left out: start-up, weight transfer, evaluation, checkpoints, failures,
pipeline bubbles, and the spread of lengths but for the longest answer of a rollout.
Sizes are in bytes, times in seconds; G is the group size, N the parameters.
"""

from __future__ import annotations

from math import ceil

from pydantic import BaseModel, ConfigDict, Field

from dapo_lib.errors import expect


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Model(_Frozen):
    """A decoder with grouped key heads and a gated MLP, by its shape.

    `experts` > 0 makes the MLP a mixture of which `chosen` act on a token.

    >>> f"{QWEN_32B.parameters:.4g}", QWEN_32B.cache_bytes
    ('3.276e+10', 262144)
    """

    name: str
    layers: int = Field(ge=1)
    width: int = Field(ge=1)
    heads: int = Field(ge=1)
    key_heads: int = Field(ge=1)
    head_width: int = Field(ge=1)
    hidden: int = Field(ge=1, description="width of one MLP or one expert")
    vocabulary: int = Field(ge=1)
    tied: bool = False
    qkv_bias: bool = True
    experts: int = Field(0, ge=0)
    chosen: int = Field(0, ge=0)

    def _layer(self, experts: int) -> int:
        q, kv = self.heads * self.head_width, self.key_heads * self.head_width
        attention = 2 * self.width * (q + kv) + self.qkv_bias * (q + 2 * kv)
        mlp = 3 * self.width * self.hidden * max(experts, 1)
        return attention + mlp + self.width * self.experts + 2 * self.width

    @property
    def embedding(self) -> int:
        """Parameters of the input embedding and of the output layer."""
        return self.vocabulary * self.width * (1 if self.tied else 2)

    @property
    def parameters(self) -> int:
        """All weights: N."""
        return self.layers * self._layer(self.experts) + self.width + self.embedding

    @property
    def active(self) -> int:
        """Weights that one token is multiplied with: all but the input embedding."""
        return self.layers * self._layer(self.chosen) + self.vocabulary * self.width

    @property
    def cache_bytes(self) -> int:
        """Keys and values of one token in bfloat16."""
        return 4 * self.layers * self.key_heads * self.head_width


class Device(_Frozen):
    """An accelerator: dense bfloat16 FLOP/s, bytes/s and bytes of its memory."""

    name: str
    flops: float = Field(gt=0)
    bandwidth: float = Field(gt=0)
    memory: float = Field(gt=0)


class Workload(_Frozen):
    """What is sampled and trained. The defaults are the paper's (§4.1, Figure 7a).

    `length`: mean tokens of a response; `longest`: of the longest in a rollout;
    `refill`: prompts drawn for each prompt kept; `minibatch` counts responses.

    >>> PAPER.updates_per_rollout, PAPER.rollouts
    (16, 500.0)
    """

    updates: int = Field(8000, ge=1)
    prompts: int = Field(512, ge=1)
    group_size: int = Field(16, ge=2)
    minibatch: int = Field(512, ge=1)
    prompt_length: float = Field(200, ge=0)
    length: float = Field(3000, gt=0)
    longest: float = Field(20480, gt=0)
    refill: float = Field(1.0, ge=1)

    @property
    def responses(self) -> int:
        """Responses trained on in one rollout."""
        return self.prompts * self.group_size

    @property
    def updates_per_rollout(self) -> int:
        """Optimiser steps on one rollout."""
        return ceil(self.responses / self.minibatch)

    @property
    def rollouts(self) -> float:
        """Rollouts in the run."""
        return self.updates / self.updates_per_rollout

    @property
    def tokens(self) -> float:
        """Response tokens trained on in one rollout."""
        return self.responses * self.length


class Cluster(_Frozen):
    """Devices, how they are used, and every share that is an assumption.

    `tensor_parallel`: devices that hold one copy of the sampler's weights;
    `train_use`, `score_use`, `decode_use`: share of the peak FLOP/s that is reached;
    `bandwidth_use`: of the peak bytes/s; `memory_use`: of the memory that the sampler
    may fill; `state_bytes`: weight, gradient, float32 master copy and two moments of
    one parameter; `recompute`: forward passes done again in the backward pass.
    """

    device: Device
    count: int = Field(128, ge=1)
    tensor_parallel: int = Field(4, ge=1)
    train_use: float = Field(0.35, gt=0, le=1)
    score_use: float = Field(0.45, gt=0, le=1)
    decode_use: float = Field(0.5, gt=0, le=1)
    bandwidth_use: float = Field(0.6, gt=0, le=1)
    memory_use: float = Field(0.8, gt=0, le=1)
    state_bytes: float = Field(16, gt=0)
    recompute: float = Field(1.0, ge=0, le=1)

    @property
    def replicas(self) -> float:
        """Copies of the sampler."""
        return self.count / self.tensor_parallel


QWEN_32B = Model(
    name="Qwen2.5-32B",
    layers=64,
    width=5120,
    heads=40,
    key_heads=8,
    head_width=128,
    hidden=27648,
    vocabulary=152064,
)
QWEN_30B_A3B = Model(
    name="Qwen3-30B-A3B",
    layers=48,
    width=2048,
    heads=32,
    key_heads=4,
    head_width=128,
    hidden=768,
    vocabulary=151936,
    qkv_bias=False,
    experts=128,
    chosen=8,
)
# peaks as the maker and its distributors publish them, dense bfloat16
A800 = Device(name="A800", flops=312e12, bandwidth=2.04e12, memory=80e9)
H20 = Device(name="H20", flops=148e12, bandwidth=4.0e12, memory=96e9)
H800 = Device(name="H800", flops=989e12, bandwidth=3.35e12, memory=80e9)
DEVICES = {device.name: device for device in (A800, H20, H800)}
PAPER = Workload()
# gen_batch_size 1536 for train_batch_size 512: drawn whether they are needed or not
RECIPE = Workload(refill=3.0)


def flops(model: Model, work: Workload) -> dict[str, float]:
    """Model FLOPs of one rollout: sampling, scoring (old log-probabilities), training.

    2 a weight and token forward, 4 more backward, and attention over the tokens before.

    >>> {k: f"{v:.2g}" for k, v in flops(QWEN_32B, PAPER).items()}
    {'sample': '1.6e+18', 'score': '1.7e+18', 'train': '5.2e+18'}
    """
    context = work.prompt_length + work.length / 2
    attention = 4 * model.layers * model.heads * model.head_width
    forward = 2 * model.active + attention * context
    prompts = work.responses * work.prompt_length
    prompt = 2 * model.active + attention * work.prompt_length / 2
    # the sampler reads a prompt once a group; the trainer once a response
    read = prompts / work.group_size
    once = work.tokens * forward + prompts * prompt
    return {
        "sample": work.refill * (work.tokens * forward + read * prompt),
        "score": once,
        "train": 3 * once,
    }


def concurrent(model: Model, work: Workload, cluster: Cluster) -> float:
    """Responses that one copy of the sampler holds in its cache at a time.

    Raises ``ValueError`` where the weights alone do not fit.

    >>> round(concurrent(QWEN_32B, PAPER, Cluster(device=A800)))
    227
    """
    room = cluster.tensor_parallel * cluster.device.memory * cluster.memory_use
    room -= 2 * model.parameters
    wanted = f"more: {model.name} needs {2 * model.parameters / 1e9:.0f} GB of weights"
    expect(room > 0, "tensor_parallel", cluster.tensor_parallel, wanted)
    return room / (model.cache_bytes * (work.prompt_length + work.length))


def decode(
    model: Model, work: Workload, cluster: Cluster, *, continuous: bool = False
) -> float:
    """Seconds to sample one rollout: its bulk, then the wait for its longest answer.

    Every step of decoding reads all weights, and each token the cache before it; the
    bulk takes the slower of that traffic and the arithmetic. The wait is steps at the
    speed of reading the weights. With `continuous` the next rollout's answers fill it,
    which needs a sampler that runs ahead of the trainer.
    """
    each = work.refill * work.responses / cluster.replicas
    waves = each / concurrent(model, work, cluster)
    steps = work.length * (waves if continuous else max(1.0, waves))
    weights = 2 * model.parameters
    context = work.prompt_length + work.length / 2
    cache = each * work.length * context * model.cache_bytes
    speed = cluster.tensor_parallel * cluster.device.bandwidth * cluster.bandwidth_use
    peak = cluster.count * cluster.device.flops * cluster.decode_use
    bulk = max((steps * weights + cache) / speed, flops(model, work)["sample"] / peak)
    wait = 0.0 if continuous else max(0.0, work.longest - work.length)
    return bulk + wait * weights / speed


def seconds(
    model: Model, work: Workload, cluster: Cluster, *, continuous: bool = False
) -> dict[str, float]:
    """Seconds of one rollout and the updates on it, by phase, on all devices in turn.

    >>> t = seconds(QWEN_32B, RECIPE, Cluster(device=A800))
    >>> {phase: round(s) for phase, s in t.items()}
    {'sample': 579, 'score': 96, 'train': 496}
    """
    spent = flops(model, work)
    peak = cluster.count * cluster.device.flops
    again = 1 + cluster.recompute / 3
    return {
        "sample": decode(model, work, cluster, continuous=continuous),
        "score": spent["score"] / (peak * cluster.score_use),
        "train": spent["train"] * again / (peak * cluster.train_use),
    }


def gpu_hours(
    model: Model, work: Workload, cluster: Cluster, *, continuous: bool = False
) -> float:
    """Device hours of the whole run."""
    spent = seconds(model, work, cluster, continuous=continuous)
    return work.rollouts * sum(spent.values()) * cluster.count / 3600


def memory(
    model: Model, work: Workload, cluster: Cluster, *, sequence_parallel: int = 8
) -> dict[str, float]:
    """Bytes on one device: training state, activations, logits; sampler and its cache.

    One response of the longest kind is trained at a time, cut over `sequence_parallel`
    devices; activations are kept at layer borders only, logits in float32. The cache is
    what all responses of a rollout would need at their mean length, shared out.

    >>> m = memory(QWEN_32B, RECIPE, Cluster(device=A800))
    >>> {name: round(size / 1e9, 1) for name, size in m.items()}
    {'state': 4.1, 'activations': 1.7, 'logits': 1.6, 'sampler': 16.4, 'cache': 161.1}
    """
    tokens = (work.prompt_length + work.longest) / sequence_parallel
    held = work.refill * work.responses * (work.prompt_length + work.length)
    return {
        "state": cluster.state_bytes * model.parameters / cluster.count,
        "activations": 2 * tokens * model.width * model.layers,
        "logits": 4 * tokens * model.vocabulary,
        "sampler": 2 * model.parameters / cluster.tensor_parallel,
        "cache": held * model.cache_bytes / cluster.count,
    }


def surplus(drawn: float, keep: float) -> float:
    """Prompts drawn by a fixed over-sampling for each that refilling would draw.

    `drawn` prompts for each that is trained on, of which a share `keep` has signal;
    refilling draws 1 / keep, so 1 means no waste.

    >>> surplus(3, 0.5)
    1.5
    """
    expect(0 < keep <= 1, "keep", keep, "a share above 0, at most 1")
    return drawn * keep
