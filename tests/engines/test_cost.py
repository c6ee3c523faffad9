"""The cost model against a step-by-step count, known sizes, and one reported run."""

from __future__ import annotations

import pytest
import torch

from dapo_lib.engines.cost import (
    A800,
    DEVICES,
    H20,
    PAPER,
    QWEN_30B_A3B,
    QWEN_32B,
    RECIPE,
    Cluster,
    Workload,
    concurrent,
    decode,
    flops,
    gpu_hours,
    memory,
    seconds,
)
from dapo_lib.errors import BadInput
from dapo_lib.lm.model import Decoder, ModelConfig

SMALL = QWEN_32B.model_copy(
    update=dict(
        layers=2, width=64, heads=4, key_heads=4, head_width=16, hidden=128,
        vocabulary=20,
    )
)  # fmt: skip


def test_the_sizes_are_those_on_the_model_cards() -> None:
    # cards: 32.5B with 31.0B outside the embeddings; 30.5B with 3.3B active
    assert QWEN_32B.parameters == pytest.approx(32.5e9, rel=0.01)
    outside = QWEN_32B.parameters - QWEN_32B.embedding
    assert outside == pytest.approx(31.0e9, rel=0.01)
    assert QWEN_30B_A3B.parameters == pytest.approx(30.5e9, rel=0.01)
    assert QWEN_30B_A3B.active == pytest.approx(3.3e9, rel=0.1)


def test_the_parameters_are_those_of_a_model_that_is_built() -> None:
    config = ModelConfig(
        vocabulary=20, width=64, layers=2, heads=4, hidden=128, mlp="swiglu",
        norm="rms", qkv_bias=True,
    )  # fmt: skip
    built = Decoder(config)
    assert SMALL.parameters == sum(p.numel() for p in built.parameters())


def test_the_flops_are_those_of_the_matrix_products() -> None:
    """Every product of one forward pass over one response, two FLOPs each."""
    work = Workload(
        updates=1, prompts=1, group_size=2, minibatch=2, prompt_length=5, length=4
    )
    m, tokens = SMALL, 2 * (5 + 4)
    linear = m.layers * (4 * m.width * m.width + 3 * m.width * m.hidden)
    linear += m.width * m.vocabulary
    reads = sum(before + 0.5 for before in range(5 + 4)) * 2  # a token and those before
    products = 2 * linear * tokens + 4 * m.layers * m.width * reads
    counted = flops(m, work)
    small = m.layers * (2 * m.width + 3 * m.width)  # norms and biases: counted as 2
    assert counted["score"] == pytest.approx(products + 2 * small * tokens, rel=1e-3)
    assert counted["train"] == 3 * counted["score"]


def test_decoding_is_what_a_clock_that_counts_steps_says() -> None:
    """One replica, everything fits: read the weights every step, the cache a token."""
    work = Workload(
        updates=1, prompts=2, group_size=4, minibatch=8, prompt_length=10, length=30,
        longest=30,
    )  # fmt: skip
    cluster = Cluster(device=A800, count=1, tensor_parallel=1, bandwidth_use=1.0)
    traffic = 0.0
    for step in range(30):
        traffic += 2 * SMALL.parameters
        traffic += 8 * (10 + step + 0.5) * SMALL.cache_bytes
    assert decode(SMALL, work, cluster) == pytest.approx(traffic / A800.bandwidth)


def test_a_longer_tail_costs_steps_and_a_sampler_that_runs_ahead_hides_them() -> None:
    cluster = Cluster(device=A800)
    short = PAPER.model_copy(update={"longest": PAPER.length})
    slow, fast = (decode(QWEN_32B, w, cluster) for w in (PAPER, short))
    steps = PAPER.longest - PAPER.length
    speed = 4 * A800.bandwidth * cluster.bandwidth_use
    assert slow - fast == pytest.approx(steps * 2 * QWEN_32B.parameters / speed)
    ahead = decode(QWEN_32B, PAPER, cluster, continuous=True)
    assert ahead == pytest.approx(fast) and fast < slow


@pytest.mark.parametrize("refill", [1.0, 3.0])
def test_it_stays_below_the_run_that_was_reported(refill: float) -> None:
    """verl#795: 128 A800, 230 rollouts in 5 days; a floor within a factor of three."""
    reported = 5 * 86400 / 230
    for length in (2000, 3000):
        work = Workload(length=length, refill=refill)
        floor = sum(seconds(QWEN_32B, work, Cluster(device=A800)).values())
        assert reported / 3 < floor < reported


def test_the_paper_s_counts() -> None:
    # §4.1: 512 prompts x 16 responses, mini-batch 512, so 16 updates a rollout
    assert PAPER.responses == 8192 and PAPER.updates_per_rollout == 16
    six_thousand = PAPER.model_copy(update={"updates": 6000})
    # verl#795, an author: about 320 rollouts for the 6,000 updates
    assert six_thousand.rollouts == pytest.approx(320, rel=0.2)


def test_hours_scale_with_what_they_must() -> None:
    one = Cluster(device=H20)
    work = PAPER.model_copy(update={"updates": 16000})
    assert gpu_hours(QWEN_32B, work, one) == pytest.approx(
        2 * gpu_hours(QWEN_32B, PAPER, one)
    )
    # arithmetic that is shared out costs the same device hours on twice the devices
    two = one.model_copy(update={"count": 256})
    once, twice = (seconds(QWEN_32B, RECIPE, c) for c in (one, two))
    for phase in ("score", "train"):
        assert once[phase] == pytest.approx(2 * twice[phase])
    assert once["sample"] < 2 * twice["sample"]  # the tail is not shared out


def test_memory_of_the_training_state_is_shared_and_the_sampler_s_weights_are_not():
    few, many = (Cluster(device=A800, count=n) for n in (64, 128))
    half, whole = (memory(QWEN_32B, RECIPE, c) for c in (many, few))
    assert whole["state"] == 2 * half["state"]
    assert whole["sampler"] == half["sampler"] == 2 * QWEN_32B.parameters / 4


def test_active_weights_are_what_a_mixture_computes_with() -> None:
    dense = flops(QWEN_32B, PAPER)["train"]
    mixture = flops(QWEN_30B_A3B, PAPER)["train"]
    assert 0.1 < mixture / dense < 0.2
    kept = memory(QWEN_30B_A3B, PAPER, Cluster(device=A800))["state"]
    assert kept / memory(QWEN_32B, PAPER, Cluster(device=A800))["state"] > 0.9


def test_weights_that_do_not_fit_are_refused() -> None:
    with pytest.raises(BadInput, match="tensor_parallel: got 1, expected more"):
        concurrent(QWEN_32B, PAPER, Cluster(device=A800, tensor_parallel=1))
    assert set(DEVICES) == {"A800", "H20", "H800"}
    assert torch.isfinite(torch.tensor(decode(QWEN_32B, PAPER, Cluster(device=H20))))
