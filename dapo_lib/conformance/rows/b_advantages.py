"""Rows B: advantages. The tolerance 1e-3 covers every eps in use (1e-9 to 1e-4)."""

from __future__ import annotations

from dapo_lib.conformance.rows.row import Case, Convention, Row

_EPS = 1e-3


def _advantages(rewards, right, *conventions, tolerance=_EPS, **given) -> Case:
    given = {"rewards": rewards, "groups": [0] * len(rewards), **given}
    return Case("advantages", given, right, tolerance, conventions)


def _gradient(reduction, loss, shares) -> Case:
    lengths, weight = (2, 4, 4, 10), (1.5, -0.5, -0.5, -0.5)
    mask = [[int(t < n) for t in range(10)] for n in lengths]
    grad = [
        [-a / d * m for m in row]
        for row, a, d in zip(mask, weight, shares, strict=True)
    ]
    given = {
        "log_ratio": [[0.0] * 10] * 4,
        "advantages": list(weight),
        "mask": mask,
        "reduction": reduction,
    }
    return Case("loss", given, {"loss": loss, "grad": grad}, 1e-6)


_CUT = {"truncated": [False, False, False, True]}
_ONE = "group_of_one_keeps_its_reward"
_DAMPED = Convention("rounding_damped_by_eps", [0.0] * 8, 1e-3)
ROWS = (
    Row(
        "B01",
        "verl#4597, verl#4598",
        (_advantages([-0.9] * 8, [0.0] * 8, _DAMPED, tolerance=1e-6, dtype="float32"),),
    ),
    Row(
        "B03",
        "NeMo-RL#4158, NeMo-RL#4161",
        (
            _advantages(
                [0.0] + [0.95] * 7,
                [-2.4749] + [0.3536] * 7,
                dtype="float32",
            ),
        ),
    ),
    Row("B04", "TRL#4662", (_advantages([0.7], [0.0], Convention(_ONE, [0.7])),)),
    Row(
        "B05",
        "verl and SkyRL sources",
        (_advantages([-1.0], [0.0], Convention(_ONE, [-1.0])),),
    ),
    Row(
        "B06",
        "TRL#3991",
        (
            _advantages(
                [1.0, -1.0, -1.0, -1.0, 1.0, 1.0, 1.0, -1.0],
                [1.4031, -0.4677, -0.4677, -0.4677, 0.4677, 0.4677, 0.4677, -1.4031],
                groups=[0] * 4 + [1] * 4,
                scale="batch",
            ),
        ),
    ),
    Row(
        "B07",
        "no framework's documentation says it",
        (
            _advantages(
                [1.0, -1.0, -1.0, -1.0],
                [1.5, -0.5, -0.5, -0.5],
                Convention("ddof_0", [1.7321, -0.5774, -0.5774, -0.5774]),
            ),
        ),
    ),
    Row(
        "B08",
        "OpenRLHF#1239",
        (
            _advantages(
                [1.0, 100.0],
                [0.0, 0.0],
                Convention("empty_response_counts", [-0.7071, 0.7071]),
                Convention("empty_response_counts", [-0.7071, 0.0]),
                lengths=[3, 0],
            ),
        ),
    ),
    Row(
        "B09",
        "TRL#3229, TRL#3248; GRPO-Zero source",
        (
            _advantages([1.0, -1.0, -1.0, -1.0], [1.5, -0.5, -0.5, -0.5], **_CUT),
            _advantages(
                [1.0, -1.0, -1.0, -1.0],
                [1.1547, -0.5774, -0.5774, 0.0],
                **_CUT,
                exclude_truncated=True,
            ),
            _advantages(
                [-1.0] * 4, [0.0] * 4, truncated=[True] * 4, exclude_truncated=True
            ),
        ),
    ),
    Row(
        "B11",
        "slime source, slime#2374, slime#2381",
        (_advantages([1.0, 1.0, 0.0, 0.0, 0.0], [0.0] * 5, groups=[0, 0, 1, 1, 1]),),
    ),
    Row(
        "B12",
        "open-r1#239, TRL#2884, TRL#2976, TRL#3857, minimind#542",
        (
            _gradient("seq_mean", 0.0, (8, 16, 16, 40)),
            _gradient("token_mean", 0.3, (20, 20, 20, 20)),
        ),
    ),
    Row(
        "B14",
        "TRL#6430",
        (
            Case(
                "rewards",
                {
                    "responses": [r"So it is \boxed{35}.", "I do not know."],
                    "reference": "34",
                },
                [-1.0, -1.0],
                conventions=(Convention("zero_one_rewards", [0.0, 0.0]),),
            ),
        ),
    ),
    Row(
        "B15",
        "TRL source (rewards that are None)",
        (
            Case(
                "grade",
                {"response": r"So it is \boxed{4}.", "reference": "a prime"},
                None,
            ),
        ),
    ),
)
