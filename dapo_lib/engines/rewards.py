"""Our verifier as the reward function of TRL and verl, and the questions as TRL wants.

Left out: shaping. TRL's and verl's own length penalty is added beside these rewards,
so that correctness stays apart from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dapo_lib.data.questions import Question, prompt_ids, read_questions
from dapo_lib.verifier import verify


def score(response: str, reference: str, *, mode: str = "auto") -> dict[str, Any]:
    """What verl's reward manager wants: `score` +1/-1 (Eq 7), `acc` 0/1, the answer.

    A reference that cannot be read gives every response -1 and 0: the filter then drops
    the group.

    >>> score("Answer: 7.0", "7")
    {'score': 1.0, 'acc': 1.0, 'pred': '7.0', 'reason': 'equal_value'}
    """
    verdict = verify(response, str(reference), mode=mode)
    right = bool(verdict.correct)
    return {
        "score": 1.0 if right else -1.0,
        "acc": float(right),
        "pred": verdict.extracted or "",
        "reason": verdict.reason,
    }


class RuleReward:
    """TRL reward function: +1 for a right completion, -1 for a wrong one (Eq 7).

    Reads the data set's `answer` column. A class and no closure: TRL may pickle it.

    >>> RuleReward()(completions=["Answer: 7", "8"], answer=["7", "7"])
    [1.0, -1.0]
    """

    __name__ = "rule_reward"

    def __init__(self, mode: str = "auto") -> None:
        self.mode = mode

    def __call__(
        self, *, completions: Sequence[Any], answer: Sequence[str], **_: Any
    ) -> list[float]:
        """One reward a completion, plain text or chat messages."""
        return [
            score(said(completion), reference, mode=self.mode)["score"]
            for completion, reference in zip(completions, answer, strict=True)
        ]


def said(completion: Any) -> str:
    """The text of a completion, which may be a list of messages.

    >>> said([{"role": "assistant", "content": "7"}])
    '7'
    """
    return completion if isinstance(completion, str) else completion[-1]["content"]


def read_problems(
    path: str,
    *,
    model: str,
    chat: bool,
    max_prompt: int,
    **columns: Any,
) -> Any:
    """A `datasets.Dataset` with the columns `prompt` and `answer`, as TRL trains on.

    With `chat`, prompts stay messages and TRL applies the template. Prompts longer than
    `max_prompt` tokens of the model's tokenizer are left out; how many, and how many
    had no readable reference, is printed. Other arguments: see `read_questions`.
    """
    from datasets import Dataset
    from transformers import AutoTokenizer

    found = read_questions(path, **columns)
    tokenizer = AutoTokenizer.from_pretrained(model)
    kept = [q for q in found.rows if prompt_length(q, tokenizer, chat) <= max_prompt]
    long = len(found.rows) - len(kept)
    if found.dropped or long:
        print(
            f"{path}: {len(kept)} problems; left out: {found.dropped} without a "
            f"readable reference, {long} longer than {max_prompt} tokens"
        )
    return Dataset.from_list(
        [{"prompt": q.messages if chat else q.text, "answer": q.answer} for q in kept]
    )


def prompt_length(question: Question, tokenizer: Any, chat: bool) -> int:
    """Tokens of a prompt as the model will see it."""
    return len(prompt_ids(question, tokenizer, chat))
