"""What a system may be asked: plain numbers, lists and words in, plain values out.

An adapter is any object (a module will do) with some of these functions. A function
that is missing, or raises ``NotImplementedError("why")``, is "not offered". Answer as
the system's own training loop would, with its own code and its own defaults.
Left out: tensors. An adapter makes its own, so that it may live in another environment.
"""

from __future__ import annotations

from typing import Any, Protocol

Rows = list[list[float]]  # one list a response; responses may differ in length


class System(Protocol):
    """Every function of the protocol; none is compulsory, all arguments are keywords.

    `versions()` -> {package: version} is shown above the results.
    """

    def versions(self) -> dict[str, str]:
        """The versions that the answers are from."""

    def advantages(
        self,
        *,
        rewards: list[float],
        groups: list[int],
        scale: str = "group",
        dtype: str = "float64",
        lengths: list[int] | None = None,
        truncated: list[bool] | None = None,
        exclude_truncated: bool = False,
    ) -> list[float]:
        """One advantage a response; `scale` is group, batch or none."""

    def loss(
        self,
        *,
        log_ratio: Rows,
        advantages: list[float],
        mask: list[list[int]],
        eps_low: float = 0.2,
        eps_high: float = 0.28,
        reduction: str = "token_mean",
        dual_clip: float | None = None,
        dtype: str = "float64",
    ) -> dict[str, Any]:
        """``{"loss": x, "grad": rows}`` by the new log-probability, one mini-batch.

        `dual_clip` None asks for the system's default.
        """

    def reduce(
        self,
        *,
        micro_batches: list[Rows],
        masks: list[list[list[int]]] | None = None,
        groups: list[list[int]] | None = None,
        truncated: list[list[bool]] | None = None,
        reduction: str = "token_mean",
        l_max: int | None = None,
        width: int | None = None,
        rollout_micro_batches: int | None = None,
    ) -> float:
        """Loss of one optimiser step from token losses at ratio 1, over micro-batches.

        `truncated` asks for overlong filtering. `width` is the padded width;
        `rollout_micro_batches` how many such micro-batches the rollout had.
        """

    def clip_shares(
        self,
        *,
        log_ratio: Rows,
        advantages: list[float],
        eps_low: float = 0.2,
        eps_high: float = 0.28,
        dual_clip: float | None = None,
    ) -> dict[str, float]:
        """Shares of tokens under the system's names: low, high, either, dual."""

    def mean_share(self, *, counts: list[list[int]]) -> float:
        """The logged share over micro-batches of [hits, tokens] each."""

    def kl(self, *, p: list[float], ref: list[float], estimator: str) -> float:
        """The expectation over p of k1, k2 or k3 of KL(p || ref)."""

    def kl_gradient(self, *, p: list[float], ref: list[float]) -> float:
        """d/d(first logit) of the KL term in the loss, exact expectation, p two-way."""

    def log_prob(
        self,
        *,
        logits: Rows,
        tokens: list[int],
        temperature: float = 1.0,
    ) -> list[float]:
        """Log-probability of each token as the loss scores it."""

    def entropy(self, *, logits: list[float], temperature: float = 1.0) -> float:
        """Exact entropy in nats, as logged."""

    def keep(
        self,
        *,
        correct: list[int],
        rule_rewards: list[float],
        rewards: list[float],
        default_metric: bool = False,
    ) -> bool:
        """Whether dynamic sampling keeps a group; `rewards` are after shaping.

        `default_metric` asks for the filter as it is without any setting, else it is
        set as a DAPO run sets it.
        """

    def refill(
        self,
        *,
        n_correct: list[int],
        group_size: int,
        need: int,
        max_rounds: int | None = None,
        oversample: float = 1.0,
    ) -> dict[str, Any]:
        """Fill a batch from prompts with known outcomes, in order.

        ``{"groups": kept prompts, "rounds", "drawn", "surplus", "accuracy_before",
        "accuracy_after"}``, or those of them that the system knows.
        """

    def dead_share(self, *, p: float, group_size: int) -> float:
        """Expected share of groups without signal at accuracy p."""

    def penalty(self, *, lengths: list[int], l_max: int, l_cache: int) -> list[float]:
        """The soft overlong penalty of each length."""

    def shaped_reward(
        self,
        *,
        correct: bool,
        length: int,
        l_max: int,
        l_cache: int,
        truncated: bool = False,
    ) -> float:
        """Rule reward plus penalty, as it reaches the advantage."""

    def response(
        self, *, tokens: list[int], eos_ids: list[int], pad_id: int
    ) -> dict[str, Any]:
        """``{"mask": [0/1], "truncated": bool}`` of one padded row of tokens."""

    def grade(self, *, response: str, reference: str, prompt: str = "") -> bool | None:
        """Whether the response is right; None where the reference is unreadable."""

    def rewards(self, *, responses: list[str], reference: str) -> list[float]:
        """The rule reward of each response."""

    def accuracy(self, *, correct: list[int], rewards: list[float]) -> float:
        """The accuracy that is reported for one group."""

    def pass_at_k(self, *, n: int, c: int, k: int) -> float:
        """pass@k from n answers of which c are right."""


OPERATIONS = tuple(n for n in vars(System) if not n.startswith("_") and n != "versions")
