"""A tiny Qwen2 made here: ours equals theirs by token; it trains in the loop."""

import copy

import pytest
import torch

from dapo_lib.algorithm import Algorithm
from dapo_lib.errors import BadInput
from dapo_lib.lm import hf_memory
from dapo_lib.lm.huggingface import HuggingFacePolicy, nucleus
from dapo_lib.lm.packing import log_prob
from dapo_lib.lm.qwen2 import from_qwen2, their_state
from dapo_lib.lm.sampler import by_exponential_race, sample
from dapo_lib.lm.tasks import DigitSum
from dapo_lib.rollout import Prompts
from dapo_lib.train import Schedule, accumulate, start, train

transformers = pytest.importorskip("transformers", reason="needs the extra `hf`")

TASK = DigitSum(0, l_max=12)
EOS, PAD = TASK.vocabulary.eos_id, TASK.vocabulary.pad_id


@pytest.fixture(scope="module")
def qwen2():
    torch.manual_seed(0)
    config = transformers.Qwen2Config(
        vocab_size=20,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        intermediate_size=48,
        max_position_embeddings=64,
        eos_token_id=EOS,
        pad_token_id=None,  # else the padding row has no gradient
        bos_token_id=None,
        initializer_range=0.3,
    )
    return transformers.Qwen2ForCausalLM(config).eval()


def policy(model, **options):
    return HuggingFacePolicy(
        model,
        lambda index: TASK.prompts[index].tolist(),
        **({"l_max": 12, "eos": [EOS], "pad": PAD} | options),
    )


def test_weights_go_there_and_back(qwen2):
    back = their_state(from_qwen2(qwen2))
    for name, value in qwen2.state_dict().items():
        assert torch.equal(back[name], value), name


def test_uncompacted_sampling_equals_generate_token_for_token(qwen2):
    prompts = TASK.prompts[:40]
    torch.manual_seed(7)
    theirs = qwen2.generate(
        prompts, attention_mask=torch.ones_like(prompts), do_sample=True, top_k=0,
        max_new_tokens=12, num_return_sequences=4, pad_token_id=PAD,
    )[:, 20:]  # fmt: skip
    ours = sample(
        from_qwen2(qwen2), prompts, 4, torch.Generator().manual_seed(7),
        l_max=12, eos=EOS, pad=PAD, choose=by_exponential_race, compact=False,
    )  # fmt: skip
    assert ours.tokens.shape == theirs.shape
    inside = torch.arange(theirs.shape[1]) < ours.length[:, None]
    assert torch.equal(ours.tokens[inside], theirs[inside])
    assert int(inside.sum()) > 500


def test_both_policies_score_alike_and_gradients_agree(qwen2):
    theirs = policy(copy.deepcopy(qwen2))
    prompts = TASK.draw(torch.tensor([6]))
    rollout = theirs.sample(prompts, 5, torch.Generator().manual_seed(1))
    plain = theirs.log_prob(rollout)
    assert float((plain - rollout.log_prob_old).detach().abs().max()) <= 9e-6
    ours = from_qwen2(qwen2)
    index, group = torch.unique(rollout.index, return_inverse=True)
    again = log_prob(ours, TASK.prompts[index], group, rollout.tokens, rollout.length)
    assert float((plain - again).detach().abs().max()) <= 9e-6
    a = torch.autograd.grad(plain.sum(), theirs.model.model.embed_tokens.weight)[0]
    b = torch.autograd.grad(again.sum(), ours.embedding)[0]
    assert float((a - b).norm() / a.norm()) <= 1e-5


def test_it_trains_in_the_one_loop(qwen2):
    schedule = Schedule(
        rollouts=2, prompts_per_rollout=4, group_size=4, l_max=12, minibatches=2
    )
    algorithm = Algorithm(dynamic_sampling=False)
    p = policy(copy.deepcopy(qwen2))
    state = start(algorithm, schedule, p, torch.Generator().manual_seed(0))
    steps = list(train(algorithm, schedule, p, DigitSum(0, l_max=12), state))
    assert [len(s.updates) for s in steps] == [2, 2]
    moved = [
        not torch.equal(a, b)
        for a, b in zip(p.parameters(), qwen2.parameters(), strict=True)
    ]
    assert any(moved)


def test_left_padding_changes_nothing(qwen2):
    alone = HuggingFacePolicy(qwen2, lambda i: [[3, 4]] * len(i), l_max=4, eos=[EOS],
                              pad=PAD)  # fmt: skip
    mixed = HuggingFacePolicy(
        qwen2, lambda i: [[3, 4]] * (len(i) - 1) + [[1, 2, 3, 4, 5]], l_max=4,
        eos=[EOS], pad=PAD,
    )  # fmt: skip
    zero = torch.zeros(2, dtype=torch.long)
    rollout = alone.sample(Prompts(zero, zero, zero), 1, torch.Generator())
    a, b = alone.log_prob(rollout), mixed.log_prob(rollout)
    assert torch.allclose(a[0], b[0], atol=1e-5)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"eos": []}, "eos"), ({"pad": EOS}, "pad"), ({"temperature": 0}, "temperature")],
)
def test_what_cannot_work_is_refused(qwen2, options, said):
    with pytest.raises(BadInput, match=said):
        policy(qwen2, **options)


def ragged(model, **options):
    """A policy whose prompts differ in length, so that a split pads otherwise."""

    def prompt_ids(index):
        return [TASK.prompts[i, -(2 + int(i) % 5) :].tolist() for i in index]

    return HuggingFacePolicy(
        model, prompt_ids, **({"l_max": 12, "eos": [EOS], "pad": PAD} | options)
    )


def losses_and_gradients(policy, batch, splits, reduction):
    algorithm = Algorithm(reduction=reduction)
    schedule = Schedule(l_max=12, micro_batches=splits)
    for parameter in policy.parameters():
        parameter.grad = None
    advantage = torch.linspace(-0.2, 1, len(batch)).roll(3)  # no sum near 0
    found = accumulate(algorithm, schedule, policy, batch, advantage, batch.mask)
    flat = [p.grad.flatten().double() for p in policy.parameters()]
    return float(found["loss"]), torch.cat(flat)


# the order of a float32 sum is worth 8e-7; in float64 nothing but the formula is left
@pytest.mark.parametrize(("dtype", "bound"), [("float32", 3e-6), ("float64", 1e-12)])
@pytest.mark.parametrize("reduction", ["token_mean", "seq_mean"])
def test_the_split_that_memory_asks_for_changes_no_loss_and_no_gradient(
    qwen2, monkeypatch, reduction, dtype, bound
):
    model = copy.deepcopy(qwen2).to(getattr(torch, dtype))
    p = ragged(model)
    index = torch.arange(6)
    prompts = Prompts(index, index, index * 0)
    batch = p.sample(prompts, 4, torch.Generator().manual_seed(2))
    with torch.no_grad():  # ratios other than 1, some clipped
        for i, parameter in enumerate(model.parameters()):
            parameter += 0.02 * torch.randn(
                parameter.shape, generator=torch.Generator().manual_seed(i)
            )
    each = hf_memory.pass_bytes(model.config, 20)
    taken = hf_memory.state_bytes(model.num_parameters())
    loss, gradient = losses_and_gradients(p, batch, 1, reduction)
    chosen = set()
    for room in (24, 13, 7, 5, 1):  # responses that the free memory has room for
        free = taken + int((room + 0.5) * each / hf_memory.SHARE)
        monkeypatch.setattr(hf_memory, "free_bytes", lambda _, free=free: free)
        splits = hf_memory.micro_batches(
            model, responses=24, tokens=20, dtype=torch.float32
        )
        chosen.add(splits)
        again, other = losses_and_gradients(p, batch, splits, reduction)
        assert abs(again - loss) <= 1e-6 * abs(loss)
        assert float((other - gradient).norm() / gradient.norm()) <= bound
    assert chosen == {1, 2, 4, 5, 24}


def test_the_nucleus_is_transformers_own():
    logits = torch.randn(50, 20, generator=torch.Generator().manual_seed(0)) * 3
    for top_p in (0.1, 0.7, 0.95):
        theirs = transformers.TopPLogitsWarper(top_p)(None, logits)
        ours = nucleus(logits.softmax(-1), top_p)
        assert torch.equal(ours > 0, theirs.isfinite())


def test_top_p_narrows_what_is_sampled_and_nothing_that_is_scored(qwen2):
    wide, narrow = policy(qwen2), policy(qwen2, top_p=0.5)
    index = torch.arange(20)
    prompts = Prompts(index, index, index * 0)
    outside = {}
    for name, p in (("wide", wide), ("narrow", narrow)):
        found = p.sample(prompts, 8, torch.Generator().manual_seed(5))
        with torch.no_grad():
            scored = wide.log_prob(found)
        assert float((scored - found.log_prob_old).abs().max()) <= 9e-6
        # of the first token all probabilities are known
        ids = torch.tensor([TASK.prompts[i].tolist() for i in found.index])
        with torch.no_grad():
            first = qwen2(ids).logits[:, -1].softmax(-1)
        likely = nucleus(first, 0.5).gather(1, found.tokens[:, :1])
        outside[name] = int((likely == 0).sum())
    assert outside["narrow"] == 0 and outside["wide"] > 20
