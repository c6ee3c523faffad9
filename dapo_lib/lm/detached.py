"""A sampler apart from the trainer, as on a cluster: older weights, coarser numbers.

The trainer keeps its float32 weights; the sampler gets a copy that is `lag` rollouts
old and rounded to the format an inference engine would use. Left out: time. Everything
runs in turn; only the weights are those of a machine that ran ahead. Not resumable:
the copies under way are not in `state_dict`.
"""

from __future__ import annotations

from collections import deque
from copy import deepcopy
from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import Tensor

from dapo_lib.errors import expect
from dapo_lib.lm.policy import LMPolicy
from dapo_lib.rollout import Prompts, Rollout

Weights = Literal["float32", "bfloat16", "int8", "int4"]
Old = Literal["sampler", "trainer"]


def rounded(weight: Tensor, weights: Weights) -> Tensor:
    """A weight as the sampler sees it, in float32: rounded, then widened again.

    Integers are symmetric, one scale for each row (the last dimension), as in
    weight-only quantisation. Shape: any -> the same.

    >>> rounded(torch.tensor([1.0, 1 / 3]), "bfloat16")
    tensor([1.0000, 0.3340])
    >>> rounded(torch.tensor([7.0, 3.4, -1.6]), "int4")
    tensor([ 7.,  3., -2.])
    """
    if weights == "float32":
        return weight.clone()
    if weights == "bfloat16":
        return weight.bfloat16().float()
    top = {"int8": 127, "int4": 7}[weights]
    scale = weight.abs().amax(-1, keepdim=True).clamp(min=1e-12) / top
    return (weight / scale).round() * scale


class DetachedPolicy(LMPolicy):
    """A policy whose samples come from a copy of the model that lags behind.

    `lag`: rollouts between the weights that sample and those that are trained (0: the
    same). `weights`: the sampler's number format. `old` says whose log-probabilities
    the ratio of Eq 8 is taken against: the sampler's own, so that clipping sees
    staleness and rounding, or the trainer's, computed anew before the first update, so
    that every ratio starts at 1 and the difference goes uncorrected.

    Raises ``ValueError`` on a negative lag or an unknown format.
    """

    def __init__(
        self,
        policy: LMPolicy,
        *,
        lag: int = 0,
        weights: Weights = "float32",
        old: Old = "sampler",
    ) -> None:
        super().__init__(policy.model, policy.task, temperature=policy.temperature)
        expect(lag >= 0, "lag", lag, "rollouts, at least 0")
        for name, value, known in (("weights", weights, Weights), ("old", old, Old)):
            wanted = f"one of {', '.join(get_args(known))}"
            expect(value in get_args(known), name, repr(value), wanted)
        self.lag, self.weights, self.old = lag, weights, old
        self.sampler = LMPolicy(
            deepcopy(policy.model), policy.task, temperature=policy.temperature
        )
        self.sent: deque[dict[str, Tensor]] = deque(maxlen=lag + 1)

    def refresh(self) -> None:
        """Send the current weights off; the sampler takes those sent `lag` ago.

        Until that many were sent it has the first ones, as a pipeline that fills.
        """
        state = self.model.state_dict()
        self.sent.append({k: rounded(v, self.weights) for k, v in state.items()})
        self.sampler.model.load_state_dict(self.sent[0])

    def sample(
        self, prompts: Prompts, group_size: int, generator: torch.Generator
    ) -> Rollout:
        """Responses of the sampler, with the old log-probabilities that `old` names."""
        self.sampler.task = self.task
        rollout = self.sampler.sample(prompts, group_size, generator)
        if self.old == "sampler":
            return rollout
        return replace(rollout, log_prob_old=self.scored(rollout))

    def scored(self, rollout: Rollout) -> Tensor:
        """[B, T] log-probabilities in nats under the trainer's current weights."""
        with torch.no_grad():
            return torch.where(rollout.mask, self.log_prob(rollout), 0.0)
