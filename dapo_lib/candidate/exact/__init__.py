"""Closed forms of the enumerable policy: what a chapter shows and a test asserts.

One problem, K actions, a softmax policy; G samples a group, p = pi(correct), k = number
correct. Everything is float64. Numbers in brackets are the forms' numbers in the book:

============  ====================================================================
divergence    KL to uniform [1], first-order entropy change [12], KL gradients [13]
groups        dead groups [2], advantages of 0/1 rewards [3]
gradient      expected gradient of GRPO and its kin [4, 5, 7, 8, 9]
covariance    exact mean and covariance of a group's gradient by enumeration [6]
clip          where the upper clip can bind, refreshes needed [10]
length        token level as a covariance [11], corners of the soft penalty [14]
evaluation    pass@k, variance of avg@n, maj@k by enumeration [15]
============  ====================================================================

Left out: sampling. Nothing here draws a random number; the suites do.
"""

from dapo_lib.candidate.exact.clip import (
    clip_can_bind,
    highest_bindable_probability,
    refreshes_needed,
)
from dapo_lib.candidate.exact.covariance import (
    enumerate_groups,
    gradient_moments,
    group_gradient,
)
from dapo_lib.candidate.exact.divergence import (
    entropy_change,
    grad_kl_policy_reference,
    grad_kl_reference_policy,
    kl_to_uniform,
)
from dapo_lib.candidate.exact.evaluation import (
    avg_at_n_variance,
    maj_at_k_exact,
    pass_at_k_exact,
)
from dapo_lib.candidate.exact.gradient import (
    dynamic_scale,
    dynamic_scale_rare,
    gradient_of_p,
    gradient_per_rollout,
    gradient_scale,
    gradient_scale_large_group,
    gradient_scale_rare,
)
from dapo_lib.candidate.exact.groups import (
    binary_advantages,
    binomial,
    dead_group_probability,
    draws_per_kept_group,
)
from dapo_lib.candidate.exact.length import (
    penalty_corners,
    sample_level_objective,
    token_level_objective,
)

__all__ = [
    "avg_at_n_variance",
    "binary_advantages",
    "binomial",
    "clip_can_bind",
    "dead_group_probability",
    "draws_per_kept_group",
    "dynamic_scale",
    "dynamic_scale_rare",
    "entropy_change",
    "enumerate_groups",
    "grad_kl_policy_reference",
    "grad_kl_reference_policy",
    "gradient_moments",
    "gradient_of_p",
    "gradient_per_rollout",
    "gradient_scale",
    "gradient_scale_large_group",
    "gradient_scale_rare",
    "group_gradient",
    "highest_bindable_probability",
    "kl_to_uniform",
    "maj_at_k_exact",
    "pass_at_k_exact",
    "penalty_corners",
    "refreshes_needed",
    "sample_level_objective",
    "token_level_objective",
]
