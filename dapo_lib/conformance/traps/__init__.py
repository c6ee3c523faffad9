r"""The trap museum: published faults as functions that run, each beside its repair.

`TRAPS[name]` is a :class:`Trap`; ``trap.run()`` executes both functions on the input
that tells them apart, ``trap.hides()`` on one where they agree.
Left out: faults that need a training run to show; the widgets and chapters have those.
"""

from __future__ import annotations

from dapo_lib.conformance.traps import groups, loss, measures
from dapo_lib.conformance.traps.trap import Outcome, Trap

__all__ = ["TRAPS", "Outcome", "Trap"]

_ALL = (
    Trap(
        name="max_negative",
        row="C01",
        broken=loss.max_for_negative,
        fixed=loss.min_for_both_signs,
        failing=(1.5, -1.0),
        innocent=(1.5, 1.0),
    ),
    Trap(
        name="falsy_eps_high",
        row="C03",
        broken=loss.falsy_eps_high,
        fixed=loss.zero_is_a_value,
        failing=(1.1, 0.2, 0.0),
        innocent=(1.5, 0.2, 0.28),
    ),
    Trap(
        name="mask_after_exp",
        row="E01",
        broken=loss.mask_after_exp,
        fixed=loss.mask_before_exp,
        failing=([0.0, 100.0], [1, 0]),
        innocent=([0.0, 2.0], [1, 0]),
    ),
    Trap(
        name="sequence_ratio",
        row="A13",
        broken=loss.sequence_ratio,
        fixed=loss.token_ratios,
        failing=([1.1, 0.9, 1.5],),
        innocent=([1.1],),
    ),
    Trap(
        name="micro_means",
        row="A01",
        broken=loss.mean_of_micro_means,
        fixed=loss.one_denominator,
        failing=([[1.0] * 2, [0.0] * 8],),
        innocent=([[1.0] * 5, [0.0] * 5],),
    ),
    Trap(
        name="counted_before_mask",
        row="A04",
        broken=loss.counted_before_the_mask,
        fixed=loss.counted_after_the_mask,
        failing=([10, 15, 5], [False, False, True]),
        innocent=([10, 15, 5], [False, False, False]),
    ),
    Trap(
        name="inverted_k3",
        row="D01",
        broken=loss.inverted_k3,
        fixed=loss.upright_k3,
        failing=([0.9, 0.1], [0.5, 0.5]),
        innocent=([0.5, 0.5], [0.5, 0.5]),
    ),
    Trap(
        name="forgotten_temperature",
        row="E04",
        broken=loss.forgotten_temperature,
        fixed=loss.one_temperature,
        failing=([2.0, 0.0], 0.5),
        innocent=([2.0, 0.0], 1.0),
    ),
    Trap(
        name="noise_over_noise",
        row="B01",
        broken=groups.noise_over_noise,
        fixed=groups.exactly_zero,
        failing=([-0.9] * 8,),
        innocent=([-1.0] * 8,),
    ),
    Trap(
        name="one_pass_std",
        row="B03",
        broken=groups.one_pass_std,
        fixed=groups.two_pass_std,
        failing=([0.0] + [0.95] * 7,),
        innocent=([0.0] * 8,),
    ),
    Trap(
        name="golden_silence",
        row="B14",
        broken=groups.silence_is_golden,
        fixed=groups.silence_is_wrong,
        failing=([-1, -1, None],),
        innocent=([1, -1, -1],),
    ),
    Trap(
        name="filter_shaped",
        row="F07",
        broken=groups.filter_on_shaped,
        fixed=groups.filter_on_correct,
        failing=([0, 0, 0, 0], [10, 10, 10, 18]),
        innocent=([0, 0, 0, 0], [10, 10, 10, 12]),
    ),
    Trap(
        name="float_std_filter",
        row="F08",
        broken=groups.float_std_filter,
        fixed=groups.integer_filter,
        failing=([0] * 6, [0.1] * 6),
        innocent=([0] * 6, [-1.0] * 6),
    ),
    Trap(
        name="no_lower_clamp",
        row="G03",
        broken=measures.no_lower_clamp,
        fixed=measures.clamped_at_minus_one,
        failing=(140, 100, 20),
        innocent=(90, 100, 20),
    ),
    Trap(
        name="pad_is_eos",
        row="G11",
        broken=measures.mask_by_pad_id,
        fixed=measures.mask_to_first_eos,
        failing=([5, 6, 2, 2], 2),
        innocent=([5, 6, 7, 8], 2),
    ),
    Trap(
        name="mean_of_means",
        row="I11",
        broken=measures.mean_of_means,
        fixed=measures.sums_then_one_division,
        failing=([(1, 2), (0, 98)],),
        innocent=([(1, 50), (0, 50)],),
    ),
    Trap(
        name="bootstrap_pass",
        row="I01",
        broken=measures.bootstrap_pass,
        fixed=measures.closed_form_pass,
        failing=(4, 1, 2),
        innocent=(4, 1, 1),
    ),
    Trap(
        name="first_brace",
        row="H06",
        broken=measures.first_closing_brace,
        fixed=measures.matching_brace,
        failing=(r"\boxed{\frac{1}{2}}",),
        innocent=(r"\boxed{12}",),
    ),
)
TRAPS: dict[str, Trap] = {trap.name: trap for trap in _ALL}
