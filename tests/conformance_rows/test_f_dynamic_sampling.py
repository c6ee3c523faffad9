"""Rows F: dynamic sampling. `Pool` answers as told; the loop's rows run `train`."""

import pytest
import torch

from dapo_lib.algorithm import ALGORITHMS
from dapo_lib.candidate.exact.groups import dead_group_probability
from dapo_lib.errors import Starved
from dapo_lib.rollout import Prompts, Rollout, rule_reward
from dapo_lib.sampling import DynamicSampler, has_signal
from dapo_lib.train import Schedule, advantages, shaped_reward


class Pool:
    """Prompts in a fixed order, each with a known number of right answers."""

    def __init__(self, n_correct, group_size=4, *, lengths=None, reverse=False) -> None:
        self.n_correct, self.group_size = n_correct, group_size
        self.lengths, self.reverse = lengths, reverse
        self.cursor = self.rounds = 0
        self.asked: list[int] = []

    def draw(self, need: torch.Tensor) -> Prompts:
        self.asked.append(int(need.sum()))
        ids = torch.arange(self.cursor, self.cursor + int(need.sum()))
        ids = ids[ids < len(self.n_correct)]
        self.cursor += len(ids)
        return Prompts(ids, ids, torch.zeros(len(ids), dtype=torch.long))

    def generate(self, prompts: Prompts) -> Rollout:
        self.rounds += 1
        ids = prompts.group_id.flip(0) if self.reverse else prompts.group_id
        rows = ids.repeat_interleave(self.group_size)
        place = torch.arange(self.group_size).repeat(len(ids))
        right = place < torch.tensor(self.n_correct)[rows]
        length = torch.full_like(rows, 3)
        if self.lengths is not None:
            length = torch.tensor(self.lengths).repeat(len(ids))
        mask = torch.arange(int(length.max()))[None] < length[:, None]
        return Rollout(
            index=rows,
            group_id=rows,
            lane=torch.zeros_like(rows),
            tokens=mask.long(),
            mask=mask,
            length=length,
            truncated=torch.zeros_like(right),
            log_prob_old=torch.zeros(mask.shape),
        ).graded(right.long(), rule_reward(right))

    def fill(self, sampler: DynamicSampler):
        return sampler.fill(self.draw, self.generate)


def groups(batch: Rollout) -> list[int]:
    return batch.group_id.unique_consecutive().tolist()


@pytest.mark.parametrize("cap", [1, 3, 10])
def test_F01_F03_exactly_max_rounds(cap):
    pool = Pool([0] * 1000)
    batch, ledger = pool.fill(DynamicSampler(2, 4, max_rounds=cap))
    assert pool.rounds == cap and ledger.rounds == cap
    assert batch is None and ledger.exhausted and ledger.all_wrong == 2 * cap


@pytest.mark.parametrize("policy", ["partial", "skip", "error"])
def test_F01_F04_what_happens_at_the_cap(policy):
    """Need 4; three groups live in the rounds there are: none is thrown away."""
    outcomes = [0, 2, 0, 4, 1, 0, 3, 0, 4, 0, 0]
    pool = Pool(outcomes + [2] * 9)
    sampler = DynamicSampler(4, 4, max_rounds=3, on_exhausted=policy)
    if policy == "error":
        with pytest.raises(Starved, match=r"3 of 4 groups after 3 of max_rounds=3"):
            pool.fill(sampler)
    else:
        batch, ledger = pool.fill(sampler)
        assert ledger.exhausted and ledger.rounds == 3
        if policy == "partial":
            assert groups(batch) == [1, 4, 6] and sampler.buffer is None
            return
        assert batch is None and ledger.kept == 0 and ledger.surplus == 3
    assert groups(sampler.buffer) == [1, 4, 6]
    pool.cursor = len(outcomes)  # the dead are over
    batch, ledger = pool.fill(sampler)
    assert groups(batch)[:3] == [1, 4, 6] and len(groups(batch)) == 4
    assert ledger.carried == 3 and ledger.prompts_drawn == 1


def test_F01_the_loop_stops_by_its_policy(run):
    made = run(answers=[4], rollouts=1, options={"max_rounds": 10})
    made.policy.logits.data[:, 0, 4] = -1e9
    (step,) = made.steps
    assert step.ledger.rounds == 10 and step.batch is None
    made = run(answers=[4], options={"on_exhausted": "error"})
    made.policy.logits.data[:, 0, 4] = -1e9
    with pytest.raises(Starved, match="max_rounds=10"):
        next(iter(made.steps))


@pytest.mark.parametrize(
    ("p", "size", "dead"),
    [(0.05, 8, 0.6634), (0.05, 16, 0.4401), (0.02, 8, 0.8508)],
)
def test_F02_how_many_groups_die(p, size, dead):
    assert dead_group_probability(p, size).item() == pytest.approx(dead, abs=5e-5)
    generator = torch.Generator().manual_seed(0)
    right = (torch.rand(20_000, size, generator=generator) < p).sum(1)
    kept = has_signal(right, torch.full_like(right, size)).double().mean()
    assert 1 - kept.item() == pytest.approx(dead, abs=0.01)


def test_F05_F06_the_filter_counts_and_knows_no_scale():
    """Same group, whatever its rewards: +-1, 1/0, or a constant .5."""
    pool = Pool([3, 0, 4])
    plain = pool.generate(pool.draw(torch.tensor([3])))
    for right, wrong in ((1.0, -1.0), (1.0, 0.0), (0.5, 0.5)):
        reward = rule_reward(plain.correct, right=right, wrong=wrong)
        batch = plain.graded(plain.correct, reward)
        kept, _ = DynamicSampler(1, 4, max_rounds=1).fill(
            Pool([3, 0, 4]).draw, lambda prompts, b=batch: b
        )
        assert groups(kept) == [0]


def test_F07_F19_the_filter_reads_correctness_before_shaping():
    pool = Pool([0, 2], lengths=[10, 10, 10, 18])
    batch = pool.generate(pool.draw(torch.tensor([2])))
    algorithm = ALGORITHMS["dapo"].model_copy(update={"advantage_eps": 0.0})
    shaped = shaped_reward(algorithm, Schedule(l_max=20), batch)
    assert shaped[:4].tolist() == [-1, -1, -1, -1.5]  # looks alive, all are wrong
    alive = advantages(algorithm, Schedule(l_max=20), batch)[:4]
    assert alive.tolist() == pytest.approx([0.5, 0.5, 0.5, -1.5])
    kept, ledger = Pool([0, 2], lengths=[10, 10, 10, 18]).fill(
        DynamicSampler(2, 4, max_rounds=1)
    )
    assert groups(kept) == [1] and ledger.all_wrong == 1
    assert ALGORITHMS["dapo"].model_dump()["dynamic_sampling"] is True  # in the record


@pytest.mark.parametrize("size", [2, 3, 6, 8, 10])
def test_F08_no_float_enters_the_filter(size):
    n_correct = torch.arange(size + 1)
    kept = has_signal(n_correct, torch.full_like(n_correct, size))
    assert kept.tolist() == [False] + [True] * (size - 1) + [False]


@pytest.mark.parametrize("policy", ["partial", "skip", "error"])
def test_F10_the_data_end_and_accepted_groups_stay(policy):
    pool = Pool([1, 2, 0, 3, 1, 4, 2])
    sampler = DynamicSampler(8, 4, on_exhausted=policy)
    if policy == "error":
        with pytest.raises(Starved, match=r"5 of 8 groups.*data are over") as caught:
            pool.fill(sampler)
        assert caught.value.ledger.prompts_drawn == 7
    else:
        batch, ledger = pool.fill(sampler)
        assert ledger.exhausted and (batch is None) == (policy == "skip")
    held = sampler.buffer if policy != "partial" else batch
    assert groups(held) == [0, 1, 3, 4, 6]


def test_F10_in_the_loop(run):
    made = run(limit=6, rollouts=1, prompts_per_rollout=8, options={"max_rounds": 50})
    (step,) = made.steps
    assert step.ledger.prompts_drawn == 6 and step.ledger.exhausted
    assert len(step.batch.group_id.unique()) == step.ledger.kept > 0


def test_F11_reward_and_accuracy_before_and_after():
    pool = Pool([0, 0, 2])
    batch, ledger = pool.fill(DynamicSampler(3, 4, max_rounds=1))
    accuracy_all = (ledger.histogram @ torch.arange(5.0).double()) / (3 * 4)
    assert accuracy_all.item() == pytest.approx(0.1667, abs=1e-4)
    assert batch.correct.double().mean().item() == 0.5
    assert ledger.reward_all / ledger.responses_all == pytest.approx(-2 / 3)
    assert ledger.reward_kept / ledger.responses_kept == 0


def test_F12_epochs_count_prompts_drawn(run):
    made = run(problems=8, rollouts=5, prompts_per_rollout=4)
    drawn = sum(step.ledger.prompts_drawn.item() for step in made.steps)
    assert made.state.prompts == drawn == made.task.cursor > 5 * 4
    assert made.state.updates == 5 * 4  # the schedule's clock is another one


def test_F13_surplus_is_counted():
    """1,536 drawn, 60 % live, 512 needed."""
    outcomes = [1, 2, 3, 0, 4] * 308
    pool = Pool(outcomes)
    sampler = DynamicSampler(512, 4, oversample=3.0)
    batch, ledger = pool.fill(sampler)
    assert ledger.prompts_drawn == 1536 and ledger.kept == 512
    assert ledger.surplus.item() == sum(0 < k < 4 for k in outcomes[:1536]) - 512
    assert (ledger.tokens_used / ledger.tokens_generated).item() == pytest.approx(1 / 3)
    assert sampler.buffer is None and len(batch) == 512 * 4


def test_F13_surplus_can_be_carried():
    pool = Pool([1] * 40)
    sampler = DynamicSampler(4, 4, oversample=2.0, surplus="carry")
    first, _ = pool.fill(sampler)
    assert groups(first) == [0, 1, 2, 3] and groups(sampler.buffer) == [4, 5, 6, 7]
    second, ledger = pool.fill(sampler)
    assert groups(second) == [4, 5, 6, 7] and pool.rounds == 1
    assert ledger.carried == 4 and ledger.prompts_drawn == 0


def test_F15_the_cursor_always_advances():
    pool = Pool([0, 4, 2, 1])
    batch, ledger = pool.fill(DynamicSampler(2, 4))
    assert groups(batch) == [2, 3] and pool.cursor == 4 and ledger.rounds == 2


def test_F15_in_the_loop(run):
    made = run(answers=[4, 4, 2, 2], rollouts=1, prompts_per_rollout=2)
    made.policy.logits.data[:2, 0, 4] = -1e9
    (step,) = made.steps
    assert set(step.batch.index.tolist()) <= {2, 3}


def test_F17_two_answers_leave_most_groups_dead():
    assert dead_group_probability(0.1838, 2).item() == pytest.approx(0.70, abs=1e-3)
    assert dead_group_probability(0.1838, 8).item() == pytest.approx(0.1970, abs=1e-4)


def test_F18_staleness_shows_per_update_index(run):
    made = run(problems=16, rollouts=3, minibatches=4, epochs=4, lr=1.0)
    for step in made.steps:
        assert len(step.updates) == 16
        drift = [abs(u["log_ratio"].item()) for u in step.updates]
        assert drift[0] < 1e-9 < drift[-1]


def test_F_groups_are_accepted_in_draw_order():
    """The first to finish is the last drawn: it must not push itself forward."""
    pool = Pool([1, 2, 0, 3, 1, 2], reverse=True)
    batch, _ = pool.fill(DynamicSampler(2, 4, oversample=3.0))
    assert set(batch.group_id.tolist()) == {0, 1}


def test_F_an_interrupted_fill_leaves_the_buffer():
    pool = Pool([1] * 40)
    sampler = DynamicSampler(6, 4, oversample=1.5, surplus="carry")
    pool.fill(sampler)
    before = groups(sampler.buffer)

    def interrupted(prompts):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sampler.fill(pool.draw, interrupted)
    assert groups(sampler.buffer) == before == [6, 7, 8]
