"""Properties of the sampler: nothing is lost, nothing is counted twice."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dapo_lib.errors import Starved
from dapo_lib.rollout import Prompts, Rollout, rule_reward
from dapo_lib.sampling import DynamicSampler, keep_everything

EVERY = settings(max_examples=60, deadline=None, derandomize=True)
SIZE = 3


class Stream:
    """Groups with given numbers right, dealt to lanes as they ask; then none."""

    def __init__(self, outcomes, lanes, seed):
        self.outcomes, self.lanes, self.cursor = outcomes, lanes, 0
        self.generator = torch.Generator().manual_seed(seed)
        self.seen: dict[int, tuple[int, int]] = {}  # id -> (lane, number right)

    def draw(self, need):
        lane = torch.arange(self.lanes).repeat_interleave(need)
        lane = lane[: len(self.outcomes) - self.cursor]
        ids = torch.arange(self.cursor, self.cursor + len(lane))
        self.cursor += len(lane)
        return Prompts(ids, ids, lane)

    def generate(self, prompts):
        ids = prompts.group_id.repeat_interleave(SIZE)
        lane = prompts.lane.repeat_interleave(SIZE)
        right = torch.arange(SIZE).repeat(len(prompts)) < torch.tensor(
            [self.outcomes[i] for i in prompts.group_id.tolist()]
        ).repeat_interleave(SIZE)
        for i, own in zip(prompts.group_id, prompts.lane, strict=True):
            self.seen[int(i)] = (int(own), self.outcomes[int(i)])
        order = torch.randperm(len(ids), generator=self.generator)  # completion order
        length = torch.randint(1, 5, (len(ids),), generator=self.generator)
        mask = torch.arange(4)[None] < length[:, None]
        rollout = Rollout(
            index=ids,
            group_id=ids,
            lane=lane,
            tokens=mask.long(),
            mask=mask,
            length=length,
            truncated=right & False,
            log_prob_old=torch.zeros(mask.shape),
        )
        return rollout.graded(right.long(), rule_reward(right)).rows(order)


@EVERY
@given(
    outcomes=st.lists(st.integers(0, SIZE), max_size=40),
    need=st.integers(1, 4),
    lanes=st.integers(1, 3),
    rounds=st.integers(1, 5),
    policy=st.sampled_from(["partial", "skip", "error"]),
    surplus=st.sampled_from(["drop", "carry"]),
    oversample=st.sampled_from([1.0, 1.5, 3.0]),
    filtered=st.booleans(),
    seed=st.integers(0, 99),
)
def test_the_books_balance(
    outcomes, need, lanes, rounds, policy, surplus, oversample, filtered, seed
):
    stream = Stream(outcomes, lanes, seed)
    options = {} if filtered else {"keep": keep_everything}
    sampler = DynamicSampler(
        need,
        SIZE,
        max_rounds=rounds,
        on_exhausted=policy,
        surplus=surplus,
        oversample=oversample,
        lanes=lanes,
        **options,
    )
    alive = range(1, SIZE) if filtered else range(SIZE + 1)
    for _ in range(3):
        waiting = ids_of(sampler.buffer)
        before = stream.cursor
        try:
            batch, ledger = sampler.fill(stream.draw, stream.generate)
        except Starved as error:
            batch, ledger = None, error.ledger
        new = range(before, stream.cursor)
        living = waiting + [i for i in new if stream.outcomes[i] in alive]
        expected, left = [], []
        for lane in range(lanes):
            mine = [i for i in living if stream.seen[i][0] == lane]
            expected += mine[:need]
            left += mine[need:]
        short = len(expected) < need * lanes
        assert ledger.exhausted == short
        if short and policy != "partial":
            expected, left = [], living
        kept_on = surplus == "carry" or (short and policy != "partial")
        assert sorted(ids_of(batch)) == sorted(expected)
        assert sorted(ids_of(sampler.buffer)) == (sorted(left) if kept_on else [])
        balance(ledger, stream, new, waiting, expected, left, filtered)
        assert (ledger.rounds <= rounds).all()


def ids_of(rollout) -> list[int]:
    return [] if rollout is None else rollout.group_id.unique().tolist()


def balance(ledger, stream, new, waiting, kept, left, filtered):
    right = [stream.outcomes[i] for i in new]
    assert ledger.prompts_drawn.sum() == len(new)
    assert ledger.all_right.sum() == right.count(SIZE)
    assert ledger.all_wrong.sum() == right.count(0)
    assert ledger.histogram.sum(0).tolist() == [right.count(k) for k in range(SIZE + 1)]
    assert ledger.carried.sum() == len(waiting)
    assert ledger.kept.sum() == len(kept) and ledger.surplus.sum() == len(left)
    assert ledger.responses_all.sum() == SIZE * len(new)
    assert ledger.reward_all.sum() == sum(2 * k - SIZE for k in right)
    if filtered:
        drawn_and_carried = ledger.prompts_drawn + ledger.carried
        dead = ledger.all_right + ledger.all_wrong
        assert (drawn_and_carried == dead + ledger.kept + ledger.surplus).all()


@EVERY
@given(outcomes=st.lists(st.integers(1, SIZE - 1), min_size=12, max_size=12))
def test_ledgers_add_up(outcomes):
    stream = Stream(outcomes, 1, 0)
    sampler = DynamicSampler(3, SIZE)
    parts = [sampler.fill(stream.draw, stream.generate)[1] for _ in range(3)]
    total = parts[0] + parts[1] + parts[2]
    assert total.prompts_drawn == 9 and total.kept == 9 and not total.exhausted
    assert total.histogram.sum() == 9
