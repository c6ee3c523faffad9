"""The mutants: for every mechanism, the smallest edit that switches it off."""

from __future__ import annotations

from typing import NamedTuple

ROWS = "tests/conformance_rows/"


class Mutant(NamedTuple):
    """An edit of one library file, and the tests that should notice it."""

    name: str
    file: str
    old: str
    new: str
    tests: list[str]


def _of(file: str, tests: list[str], *edits: tuple[str, str, str]) -> list[Mutant]:
    return [Mutant(name, file, old, new, tests) for name, old, new in edits]


MUTANTS = [
    *_of(
        "objective.py",
        [ROWS + "test_c_clipping.py", ROWS + "test_a_normalisation.py",
         ROWS + "test_e_numerics.py", "tests/test_objective.py",
         "tests/invariances/test_policy_loss.py"],
        ("Clip-Higher (symmetric bounds)", "1 + eps_high) * advantage",
         "1 + eps_low) * advantage"),
        ("lower clip", "clamp(1 - eps_low, ", "clamp(0.0, "),
        ("the minimum (clip without pessimism)",
         "torch.where(clipped < free, clipped, free)",
         "ratio.clamp(1 - eps_low, 1 + eps_high) * advantage"),
        ("dual clip", "    if dual_clip is None:\n        return objective",
         "    return objective"),
        ("token-level loss (sequence mean instead)",
         'if reduction == "token_mean":\n        counted = tokens',
         'if reduction == "token_mean":\n        own = tokens'),
        ("group token mean", "total = tokens.new_zeros(len(names)).index_add_(0, group,"
         " tokens)[group]", "total = tokens"),
        ("Dr.GRPO constant", "own = torch.full_like(tokens, l_max)", "own = tokens"),
        ("global denominator (local count instead)",
         "if denominator is None else denominator\n    return own",
         "\n    return own"),
        ("a masked row leaves the count", "(tokens > 0).to(tokens)",
         "torch.ones_like(tokens)"),
        ("denominator of at least 1", ".to(own).clamp(min=1)", ".to(own)"),
        ("mask before exp",
         "torch.where(mask, _wide(log_prob) - _wide(log_prob_old).detach(), 0.0)",
         "_wide(log_prob) - _wide(log_prob_old).detach()"),
        ("clamp of the log-ratio",
         "log_ratio.clamp(-LOG_RATIO_CLAMP, LOG_RATIO_CLAMP).exp()",
         "log_ratio.exp()"),
        ("mask of the numerator", "torch.where(mask, objective, 0.0).sum(1)",
         "objective.sum(1)"),
        ("float32 at least", "torch.promote_types(values.dtype, torch.float32)",
         "values.dtype"),
        ("sign of clip_low", "down & (ratio < 1 - eps_low)",
         "(ratio < 1 - eps_low)"),
        ("sign of clip_high", "(advantage > 0) & (ratio >", "(ratio >"),
        ("p_up_clipped over up-clipped tokens only",
         "torch.where(high, _wide(log_prob_old).exp(), 0.0)",
         "torch.where(mask, _wide(log_prob_old).exp(), 0.0)"),
        ("counts of lanes kept apart", "    if lanes is None:\n        return amount",
         "    if True:\n        return amount"),
    ),
    *_of(
        "advantage.py",
        [ROWS + "test_b_advantages.py", "tests/test_advantage.py",
         "tests/invariances/test_group_advantages.py"],
        ("constant group is exactly 0",
         "torch.where(used.differs(tolerance), advantage, 0.0)", "advantage"),
        ("tolerance of the constant group", "(most.sum(0) > tolerance)",
         "(most.sum(0) > 0)"),
        ("ddof", "(self.count - ddof).clamp(min=1)", "self.count.clamp(min=1)"),
        ("eps", "(divided.deviation(ddof) + eps)", "(divided.deviation(ddof) + 1e-3)"),
        ("leave-one-out", "    if baseline == \"leave_one_out\":",
         "    if False:"),
        ("scale", "    if divided is not None:", "    if False:"),
        ("batch scale", "{\"group\": groups, \"batch\": batch, \"none\": None}[scale]",
         "{\"group\": groups, \"batch\": groups, \"none\": None}[scale]"),
        ("batch baseline", "batch if baseline == \"batch\" else groups if",
         "groups if baseline == \"batch\" else groups if"),
        ("include", "ones = torch.ones_like(rewards) if include is None else "
         "include.to(rewards)", "ones = torch.ones_like(rewards)"),
        ("lanes of batch statistics", "torch.zeros_like(group_ids) if lanes is None "
         "else lanes", "torch.zeros_like(group_ids)"),
        ("float64 statistics", "rewards.detach().to(torch.float64)",
         "rewards.detach().float()"),
        ("warning for a group of one", "bool((groups.count == 1).any())", "False"),
    ),
    *_of(
        "overlong.py",
        [ROWS + "test_g_length.py", ROWS + "test_b_advantages.py",
         "tests/test_overlong.py"],
        ("soft overlong penalty", "return (room / max(l_cache, 1)).clamp(-1.0, 0.0)",
         "return 0.0 * room"),
        ("bound of -1", ".clamp(-1.0, 0.0)", ".clamp(max=0.0)"),
        ("start of the slope", "room = l_max - l_cache - length",
         "room = l_max - l_cache - 1 - length"),
        ("check of l_cache", "expect(0 <= l_cache <= l_max, \"l_cache\"",
         "expect(True, \"l_cache\""),
        ("overlong filtering", "mask.bool() & ~truncated.bool()[:, None]",
         "mask.bool()"),
    ),
    *_of(
        "sampling.py",
        [ROWS + "test_f_dynamic_sampling.py", ROWS + "test_b_advantages.py",
         "tests/test_sampling.py", "tests/invariances/test_dynamic_sampling.py"],
        ("dynamic sampling (all groups kept)", "(n_correct > 0) & (n_correct < size)",
         "n_correct >= 0"),
        ("all-right groups dropped", "(n_correct > 0) & (n_correct < size)",
         "n_correct > 0"),
        ("refill", "        for _ in range(self.max_rounds):",
         "        for _ in range(1):"),
        ("exact max_rounds", "        for _ in range(self.max_rounds):",
         "        for _ in range(self.max_rounds + 1):"),
        ("draw order", "_rank_within(g.lane[alive], self.lanes) < self.n_groups",
         "_rank_within(g.lane[alive], self.lanes) >= alive.sum() - self.n_groups"),
        ("surplus dropped", "< self.n_groups\n        postponed",
         "< 10**9\n        postponed"),
        ("surplus carried", "self.surplus == \"carry\" or postponed", "postponed"),
        ("kept groups outlive exhaustion", "self.surplus == \"carry\" or postponed",
         "self.surplus == \"carry\""),
        ("the buffer enters the next batch", "if buffer is None:", "if True:"),
        ("error when exhausted", "        raise error\n", "        return\n"),
        ("invalid groups removed", "alive = g.valid & self.keep",
         "alive = self.keep"),
        ("ids that grow", "grow = bool((ids.diff() > 0).all())", "grow = True"),
        ("correct is 0/1", "expect(binary, \"correct\"", "expect(True, \"correct\""),
        ("data that end", "            if not len(prompts):\n                break\n",
         ""),
    ),
    *_of(
        "rollout.py",
        [ROWS + "test_g_length.py", "tests/test_rollout.py"],
        ("several EOS ids", "tokens.new_tensor(ends)", "tokens.new_tensor(ends[:1])"),
        ("first EOS stays", "is_eos.cumsum(1) - is_eos.long()", "is_eos.cumsum(1)"),
        ("after the first EOS all is dropped", "(before == 0) & (tokens != pad_id)",
         "(before >= 0) & (tokens != pad_id)"),
        ("pad is not EOS", "expect(pad_id not in ends,", "expect(True,"),
        ("truncated = no EOS", "~is_eos.any(1))", "mask.all(1))"),
        ("wrong is -1", "wrong: float = -1.0", "wrong: float = 0.0"),
    ),
    *_of(
        "kl.py",
        [ROWS + "test_d_kl.py", "tests/test_kl.py"],
        ("sign of k1", "return log_prob - log_prob_ref",
         "return log_prob_ref - log_prob"),
        ("k3 with ref / pi", "(-_difference(log_prob, log_prob_ref))",
         "(_difference(log_prob, log_prob_ref))"),
        ("clamp of k3", ".clamp(max=LOG_RATIO_CLAMP)", ""),
        ("straight-through gradient", "gradient + (value - gradient).detach()",
         "value"),
    ),
    *_of(
        "metrics.py",
        [ROWS + "test_i_metrics.py", ROWS + "test_e_numerics.py",
         ROWS + "test_c_clipping.py", "tests/test_metrics.py"],
        ("temperature", "logits.to(wide) / temperature", "logits.to(wide)"),
        ("float32 log-probabilities",
         "torch.promote_types(logits.dtype, torch.float32)", "logits.dtype"),
        ("closed form of pass@k", "1 - Fraction(comb(n - c, k), comb(n, k))",
         "1 - (1 - c / n) ** k"),
        ("ties of maj@k", "sum(a in right for a in winners) / len(winners)",
         "float(winners[0] in right)"),
        ("shares over merged counts", "(\"clip_low\", \"clip_high\", \"clip_dual\", "
         "\"log_ratio\"), tokens)", "(\"clip_low\", \"clip_high\", \"clip_dual\", "
         "\"log_ratio\"), 1.0)"),
    ),
    *_of(
        "train.py",
        [ROWS + "test_f_dynamic_sampling.py", ROWS + "test_g_length.py",
         ROWS + "test_b_advantages.py", ROWS + "test_c_clipping.py",
         ROWS + "test_i_metrics.py"],
        ("loop: filter", "keep=has_signal if algorithm.dynamic_sampling else "
         "keep_everything", "keep=keep_everything"),
        ("loop: penalty", "    if algorithm.overlong == \"soft\":", "    if False:"),
        ("loop: overlong filtering", "    if algorithm.overlong == \"filter\":\n",
         "    if False:\n"),
        ("loop: baseline without cut rows",
         "include=~excluded & (batch.length > 0)", "include=batch.length > 0"),
        ("loop: empty responses leave the baseline",
         "include=~excluded & (batch.length > 0)", "include=~excluded"),
        ("loop: one denominator a mini-batch",
         "denominator=splits if whole is None else whole[rows]", "denominator=None"),
        ("loop: refresh of the old policy", "            policy.refresh()\n",
         "            pass\n"),
        ("loop: warm-up in updates",
         "warmup = schedule.warmup_rollouts * schedule.updates_per_rollout",
         "warmup = schedule.warmup_rollouts"),
        ("loop: no step on nothing",
         "continue  # a step on a zero gradient would", "pass  #"),
    ),
]  # fmt: skip
