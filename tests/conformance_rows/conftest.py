"""A tiny tabular policy and task, so that rows about the loop run the library's loop.

Each problem is a table of logits [T, V]. Token 0 is padding, token 1 ends a response;
the answer is right when its first token is the problem's own. Everything is float64.
"""

from types import SimpleNamespace

import pytest
import torch

from dapo_lib.algorithm import ALGORITHMS
from dapo_lib.metrics import token_log_prob
from dapo_lib.objective import policy_loss
from dapo_lib.rollout import Prompts, Rollout, response_mask, rule_reward
from dapo_lib.train import Schedule, start, train

PAD, EOS, FIRST = 0, 1, 2


class Table:
    """Independent logits for every problem and place; PAD can never be drawn."""

    def __init__(self, logits: torch.Tensor) -> None:
        self.logits = logits.double().clone().requires_grad_()
        self.old = self.logits.detach().clone()

    def refresh(self):
        self.old = self.logits.detach().clone()

    def parameters(self):
        return [self.logits]

    def state_dict(self):
        return {"logits": self.logits.detach().clone(), "old": self.old.clone()}

    def load_state_dict(self, state):
        self.logits.data.copy_(state["logits"])
        self.old = state["old"].clone()

    def sample(self, prompts: Prompts, group_size: int, generator) -> Rollout:
        index, group_id, lane = (
            v.repeat_interleave(group_size)
            for v in (prompts.index, prompts.group_id, prompts.lane)
        )
        logits = self._possible(self.old[index])
        rows, width, size = logits.shape
        flat = logits.softmax(-1).view(-1, size)
        drawn = torch.multinomial(flat, 1, generator=generator).view(rows, width)
        mask, length, truncated = response_mask(drawn, EOS, PAD)
        log_prob = token_log_prob(logits, drawn)
        return Rollout(
            index=index,
            group_id=group_id,
            lane=lane,
            tokens=torch.where(mask, drawn, PAD),
            mask=mask,
            length=length,
            truncated=truncated,
            log_prob_old=torch.where(mask, log_prob, 0.0),
        )

    def log_prob(self, rollout: Rollout) -> torch.Tensor:
        drawn = rollout.tokens.clamp(min=EOS)  # padding is masked later
        return token_log_prob(self._possible(self.logits[rollout.index]), drawn)

    @staticmethod
    def _possible(logits):
        barred = torch.zeros_like(logits)
        barred[..., PAD] = -torch.inf
        return logits + barred


class FirstToken:
    """Draws problems in order with one cursor; right = the first token is `answer`."""

    def __init__(self, answers, *, limit: int | None = None, lanes: int = 1) -> None:
        self.answers, self.limit = torch.as_tensor(answers), limit
        self.cursor, self.lanes = 0, lanes

    def draw(self, need: torch.Tensor, generator) -> Prompts:
        lane = torch.arange(self.lanes).repeat_interleave(need)
        if self.limit is not None:
            lane = lane[: max(self.limit - self.cursor, 0)]
        ids = torch.arange(self.cursor, self.cursor + len(lane))
        self.cursor += len(lane)
        return Prompts(ids % len(self.answers), ids, lane)

    def grade(self, rollout: Rollout) -> Rollout:
        correct = rollout.tokens[:, 0] == self.answers[rollout.index]
        return rollout.graded(correct.long(), rule_reward(correct))


def build(
    *,
    problems: int = 8,
    width: int = 4,
    size: int = 5,
    answers=None,
    limit=None,
    algorithm="dapo",
    seed: int = 0,
    logits=None,
    options=(),
    **schedule,
):
    """Everything that a run needs; `options` override the algorithm's fields."""
    defaults = {"prompts_per_rollout": 4, "group_size": 4, "l_max": width}
    defaults |= {"rollouts": 2, "minibatches": 4, "optimiser": "sgd", "lr": 1.0}
    schedule = Schedule(**(defaults | schedule))
    chosen = ALGORITHMS[algorithm].model_copy(
        update={"l_cache": min(2, width)} | dict(options)
    )
    answers = [FIRST] * problems if answers is None else answers
    if logits is None:
        logits = torch.zeros(len(answers), width, size)
    policy, task = Table(logits), FirstToken(answers, limit=limit)
    generator = torch.Generator().manual_seed(seed)
    state = start(chosen, schedule, policy, generator)
    steps = train(chosen, schedule, policy, task, state)
    return SimpleNamespace(
        algorithm=chosen,
        schedule=schedule,
        policy=policy,
        task=task,
        state=state,
        steps=steps,
    )


@pytest.fixture
def run():
    """Build a run of the tabular policy; iterate over its ``steps``."""
    return build


@pytest.fixture
def graded():
    """A graded rollout from plain lists: one row a response, tokens made up."""

    def make(correct, group_ids, *, length=None, reward=None, truncated=None, **more):
        correct = torch.tensor(correct)
        rows = len(correct)
        length = torch.tensor(length if length is not None else [3] * rows)
        mask = torch.arange(int(length.max()) or 1)[None] < length[:, None]
        ids = torch.tensor(group_ids)
        return Rollout(
            index=ids,
            group_id=ids,
            lane=torch.zeros(rows, dtype=torch.long),
            tokens=mask.long() * FIRST,
            mask=mask,
            length=length,
            truncated=torch.tensor(truncated or [False] * rows),
            log_prob_old=torch.zeros(mask.shape, dtype=torch.float64),
            correct=correct,
            reward=rule_reward(correct) if reward is None else torch.tensor(reward),
            **more,
        )

    return make


@pytest.fixture
def reduce():
    """The loss of given per-token losses at ratio 1, as `policy_loss` reduces them."""

    def loss_of(per_token, mask=None, **options):
        per_token = torch.tensor(per_token, dtype=torch.float64)
        mask = torch.ones_like(per_token) if mask is None else torch.tensor(mask)
        log_prob = torch.full_like(per_token, -1.0)
        loss, _ = policy_loss(log_prob, log_prob, -per_token, mask, **options)
        return loss.item()

    return loss_of


@pytest.fixture
def surrogate():
    """The objective of one token with a given ratio and advantage."""

    def value(ratio, advantage, **options):
        log_prob = torch.tensor([[-6.0 + ratio.log()]], dtype=torch.float64)
        log_prob.requires_grad_()
        old = torch.full_like(log_prob, -6.0).detach()
        out = policy_loss(log_prob, old, torch.tensor([advantage]), old < 0, **options)
        out.loss.backward()
        return -out.loss.item(), -log_prob.grad.item(), out.diagnostics

    def call(ratio, advantage, **options):
        return value(torch.tensor(ratio, dtype=torch.float64), advantage, **options)

    return call
