"""The map and the three renderings: every key exists, and what is rendered is DAPO."""

from __future__ import annotations

import ast
import subprocess

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dapo_lib.engines import render, table
from dapo_lib.engines.check_config import check_config
from dapo_lib.engines.check_config.names import from_table
from dapo_lib.errors import BadInput
from dapo_lib.experiments.config import Run, load_run, presets
from dapo_lib.labels import table as labels


def test_every_option_of_the_map_is_one_of_the_engine_s():
    for engine in table.ENGINES:
        known = from_table(engine)
        for row in table.table()["rows"]:
            for cell in row[engine]:
                free = cell["key"].startswith("reward.reward_kwargs.")
                assert free == ("add" in cell), cell
                assert free or known.knows(cell["key"]), cell


def test_every_setting_of_a_run_is_in_the_map_or_in_a_limit():
    ours = set(load_run("dapo-32b").flat())
    rows = {row["ours"] for row in table.table()["rows"]}
    assert rows <= ours
    told = {key for x in table.table()["limits"] for key in x["when"]}
    cells = {c.get("of") for r in table.table()["rows"] for c in r["verl"] + r["trl"]}
    placed = rows | told | cells
    scripts = {f"data.{k}" for k in Run.model_fields["data"].annotation.model_fields}
    only_ours = {"algorithm.advantage_eps", "schedule.micro_batches"}
    assert ours - placed - scripts - only_ours == set()


def test_words_for_every_limit_and_part_in_both_languages():
    known = labels()
    for limit in table.table()["limits"]:
        assert f"engines.limit_{limit['id']}" in known
    for row in table.table()["rows"]:
        assert f"engines.part_{row['part']}" in known
    used = {f"engines.limit_{x['id']}" for x in table.table()["limits"]}
    used |= {f"engines.part_{x['part']}" for x in table.table()["rows"]}
    assert {k for k in known if k.startswith("engines.")} == used


def test_what_a_map_versions_says_is_what_check_config_knows():
    for engine, version in table.table()["tested"].items():
        assert from_table(engine).version == version


@pytest.mark.parametrize("name", presets())
@pytest.mark.parametrize("engine", table.ENGINES)
def test_a_preset_is_dapo_by_our_own_check(name, engine, tmp_path):
    run = load_run(name)
    path = tmp_path / ("train.py" if engine == "trl" else "launch.sh")
    text = render.render_trl(run) if engine == "trl" else render.render_verl(run)
    path.write_text(text)
    report = check_config(path)
    assert report.verdict == "dapo", report.as_dict()
    assert report.refused == [] and report.no_effect == []


def test_the_scripts_parse():
    for name in presets():
        run = load_run(name)
        ast.parse(render.render_trl(run))
        ast.parse(render.render_reward(run))
        assert yaml.safe_load(render.render_fsdp(run))["num_processes"] >= 1
        done = subprocess.run(
            ["bash", "-n"], input=render.render_verl(run), text=True, check=False
        )
        assert done.returncode == 0


def test_lengths_and_counts_of_the_paper_s_run():
    run = load_run("dapo-32b")
    verl = {o.key: o.value for o in table.options(run, "verl")}
    trl = {o.key: o.value for o in table.options(run, "trl")}
    assert verl["reward.reward_kwargs.max_resp_len"] == 20480
    assert verl["actor_rollout_ref.actor.ppo_mini_batch_size"] == 32
    # one unit each: verl's scheduler counts rollouts, TRL's counts updates
    assert verl["actor_rollout_ref.actor.optim.lr_warmup_steps"] == 20
    assert trl["warmup_steps"] == 320
    assert trl["max_steps"] == 10_240
    per_update = trl["gradient_accumulation_steps"] * 128 * 1
    assert per_update == 512
    assert trl["steps_per_generation"] * 128 == 512 * 16


ALGORITHMS = st.fixed_dictionaries(
    {
        "eps_low": st.floats(0, 1),
        "eps_high": st.floats(0, 10),
        "dual_clip": st.none() | st.floats(1.01, 20),
        "reduction": st.sampled_from(["token_mean", "seq_mean", "group_token_mean"]),
        "dynamic_sampling": st.booleans(),
        "overlong": st.sampled_from(["none", "soft", "filter", "linear"]),
        "l_cache": st.integers(0, 32),
        "scale": st.sampled_from(["group", "batch", "none"]),
        "kl_coef": st.sampled_from([0.0, 1e-3]),
    }
)


@settings(max_examples=60, deadline=None)
@given(
    algorithm=ALGORITHMS,
    lr=st.floats(1e-9, 1e-1),
    path=st.text(min_size=1).filter(str.isprintable),
)
def test_our_yaml_and_the_python_script_read_back_as_written(algorithm, lr, path):
    base = load_run("laptop").model_dump()
    run = Run(
        **{**base, "algorithm": {**base["algorithm"], **algorithm}}
        | {"schedule": {**base["schedule"], "lr": lr}, "model": {"path": path}}
    )
    assert Run(**yaml.safe_load(render.render_ours(run))) == run
    tree = ast.parse(render.render_trl(run))
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    config = next(c for c in calls if getattr(c.func, "id", "") == "GRPOConfig")
    read = {k.arg: k.value for k in config.keywords}
    for option in table.options(run, "trl"):
        assert ast.literal_eval(read[option.key]) == option.value


def test_every_lost_mechanism_is_named():
    changes = {
        "verl": {
            "algorithm.reduction=group_token_mean": "reduction_group",
            "algorithm.overlong=filter": "overlong_filter",
            "algorithm.overlong=linear": "overlong_linear",
            "algorithm.scale=batch": "scale_batch",
            "algorithm.ddof=0": "ddof",
            "schedule.clip_value=1": "clip_value",
            "schedule.refresh_every=2": "stale",
            "algorithm.baseline=leave_one_out": "scaled_loo",
        },
        "trl": {
            "algorithm.reduction=group_token_mean": "reduction_group",
            "algorithm.baseline=leave_one_out": "baseline_other",
            "algorithm.dual_clip=1.1": "dual_clip_low",
            "algorithm.on_exhausted=skip": "skip",
            "algorithm.reduction=seq_mean": "partial_mean",
            "algorithm.surplus=carry": "carry",
        },
    }
    for engine, rows in changes.items():
        for change, wanted in rows.items():
            found = table.limits(load_run("one-gpu", [change]), engine)
            assert [x.id for x in found if x.level == "lost"] == [wanted], change


def test_sizes_that_do_not_divide_are_refused_by_name():
    run = load_run("one-gpu", ["hardware.responses_per_device=7"])
    with pytest.raises(BadInput, match=r"accumulation .*responses_per_device=7"):
        table.values(run)


@pytest.mark.parametrize(
    "text", ["a'b", 'a"b', "a$b", "a`b", "a\\b", "a\nb", "true", "1e5", "a b", "#x", ""]
)
def test_text_for_verl_is_quoted_or_refused(text):
    try:
        word = table.hydra_text(text)
    except BadInput:
        assert any(c in text for c in "'\"$`\\\n")
    else:
        assert word == f'"{text}"'
