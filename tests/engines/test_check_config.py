"""Configurations shaped like those people run, each with the verdict it must get."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dapo_lib.cli import main
from dapo_lib.engines.check_config import check_config, render
from dapo_lib.engines.check_config import names as names_module
from dapo_lib.engines.check_config.names import Names, from_table, names
from dapo_lib.errors import BadInput

PAPER_SCRIPT = r"""
#!/usr/bin/env bash
set -xeuo pipefail
# a comment that mentions actor_rollout_ref.actor.clip_ratio_high=0.2
export clip_ratio_low=0.2
clip_ratio_high=0.28
max_prompt_length=$((1024 * 2))
max_response_length=$((1024 * 20))
overlong_buffer_len=$((1024 * 4))
train_prompt_bsz=512
train_prompt_mini_bsz=32
tokens=$(((max_prompt_length + max_response_length) * 1))
NNODES=${NNODES:-16}
REWARD=(
    reward.reward_manager.name=dapo
    +reward.reward_kwargs.overlong_buffer_cfg.enable=True
    +reward.reward_kwargs.overlong_buffer_cfg.len=${overlong_buffer_len}
    +reward.reward_kwargs.overlong_buffer_cfg.penalty_factor=1.0
    +reward.reward_kwargs.max_resp_len=${max_response_length})
ray job submit --working-dir "${WORKING_DIR}" -- python3 -m verl.trainer.main_ppo \
    data.train_files="${TRAIN_FILE}" \
    data.max_prompt_length=${max_prompt_length} \
    data.max_response_length=${max_response_length} \
    data.gen_batch_size=1536 \
    data.train_batch_size=${train_prompt_bsz} \
    actor_rollout_ref.rollout.n=16 \
    algorithm.adv_estimator=grpo \
    algorithm.use_kl_in_reward=False \
    actor_rollout_ref.actor.use_kl_loss=False \
    actor_rollout_ref.actor.clip_ratio_low=${clip_ratio_low} \
    actor_rollout_ref.actor.clip_ratio_high=${clip_ratio_high} \
    actor_rollout_ref.actor.clip_ratio_c=10.0 \
    actor_rollout_ref.actor.loss_agg_mode=token-mean \
    actor_rollout_ref.actor.entropy_coeff=0 \
    actor_rollout_ref.actor.ppo_mini_batch_size=${train_prompt_mini_bsz} \
    actor_rollout_ref.actor.ppo_max_token_len_per_gpu=${tokens} \
    algorithm.filter_groups.enable=True \
    algorithm.filter_groups.metric=acc \
    algorithm.filter_groups.max_num_gen_batches=10 \
    trainer.nnodes="${NNODES}" \
    "${REWARD[@]}"
"""

TRL_DAPO = """
import trl
from trl.rewards import get_soft_overlong_punishment

CAP = 1024 * 20
common = dict(beta=0.0, loss_type="dapo")

class DynamicSamplingTrainer(trl.GRPOTrainer):
    pass

args = trl.GRPOConfig(
    output_dir="out", epsilon=0.2, epsilon_high=0.28, num_generations=16,
    steps_per_generation=16, max_completion_length=CAP, **common,
)
penalty = get_soft_overlong_punishment(max_completion_len=CAP, soft_punish_cache=4096)
trainer = DynamicSamplingTrainer(model="m", args=args, reward_funcs=[right, penalty])
"""


@pytest.fixture
def report(tmp_path):
    """Writes a configuration and returns the report on it."""

    def of(text, name="run.sh"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return check_config(path)

    return of


def found(report, mechanism):
    (finding,) = [f for f in report.findings if f.mechanism == mechanism]
    return finding


def faults(report):
    return {f.mechanism for f in report.findings if f.status == "not_dapo"}


def edited(script, old, new):
    assert old in script
    return script.replace(old, new)


def test_the_papers_run_script_is_dapo(report):
    r = report(PAPER_SCRIPT)
    assert (r.engine, r.verdict, r.changes()) == ("verl", "dapo", [])
    assert found(r, "clip_higher").effective == {"eps_low": 0.2, "eps_high": 0.28}
    assert found(r, "soft_overlong").effective == {
        "l_max": 20480,
        "l_cache": 4096,
        "generation_cap": 20480,
    }
    assert found(r, "updates_per_rollout").effective["updates_per_rollout"] == 16
    assert found(r, "dual_clip").effective == {"dual_clip": 10.0}
    dead = {k.key for k in r.no_effect}
    assert dead == {
        "algorithm.filter_groups.max_num_gen_batches",
        "data.gen_batch_size",
    }


def test_a_plain_trl_default_is_not_dapo(report):
    r = report('from trl import GRPOConfig\nc = GRPOConfig(output_dir="out")\n', "a.py")
    assert r.verdict == "not_dapo"
    assert faults(r) == {
        "clip_higher",
        "dynamic_sampling",
        "soft_overlong",
        "updates_per_rollout",
    }
    assert found(r, "clip_higher").effective == {"eps_low": 0.2, "eps_high": 0.2}
    assert found(r, "token_level_loss").status == "dapo"
    assert "epsilon_high=0.28" in r.changes()
    assert {k.key for k in r.no_effect} == {"epsilon_high"}


def test_trl_with_a_refilling_trainer_is_dapo(report):
    r = report(TRL_DAPO, "train.py")
    assert (r.verdict, r.changes(), r.refused) == ("dapo", [], [])
    assert found(r, "soft_overlong").effective["l_max"] == 20480


def test_a_typo_under_plus_is_never_read(report):
    typo = "+actor_rollout_ref.actor.clip_ratio_hihg="
    r = report(
        edited(PAPER_SCRIPT, "actor_rollout_ref.actor.clip_ratio_high=${", typo + "${")
    )
    assert r.verdict == "not_dapo" and faults(r) == {"clip_higher"}
    (dead,) = [k for k in r.no_effect if "hihg" in k.key]
    assert "did you mean actor_rollout_ref.actor.clip_ratio_high" in dead.why
    assert r.changes() == ["actor_rollout_ref.actor.clip_ratio_high=0.28"]


def test_a_typo_without_plus_stops_verl(report):
    old = "actor_rollout_ref.actor.clip_ratio_high=${"
    r = report(edited(PAPER_SCRIPT, old, "actor_rollout_ref.actor.clip_ratio_hi=${"))
    assert [k.key for k in r.refused] == ["actor_rollout_ref.actor.clip_ratio_hi"]
    assert r.verdict == "not_dapo"


def test_an_overlong_buffer_at_the_old_key(report):
    old = "+reward.reward_kwargs.overlong_buffer_cfg."
    r = report(edited(PAPER_SCRIPT, old, "reward_model.overlong_buffer."))
    assert "soft_overlong" in faults(r) and len(r.refused) == 3
    assert all("reward.reward_kwargs.overlong_buffer_cfg" in k.why for k in r.refused)
    r = report(edited(PAPER_SCRIPT, old, "+reward_model.overlong_buffer."))
    assert faults(r) == {"soft_overlong"} and not r.refused
    dead = [k.key for k in r.no_effect if "overlong_buffer" in k.key]
    assert len(dead) == 3
    assert "+reward.reward_kwargs.overlong_buffer_cfg.enable=True" in r.changes()


def test_an_overlong_buffer_without_plus_is_refused(report):
    old = "+reward.reward_kwargs.max_resp_len"
    r = report(edited(PAPER_SCRIPT, old, old[1:]))
    assert [k.key for k in r.refused] == ["reward.reward_kwargs.max_resp_len"]


def test_the_older_place_that_verl_still_moves(report):
    text = PAPER_SCRIPT.replace("+reward.reward_kwargs", "+reward_model.reward_kwargs")
    text = edited(text, "reward.reward_manager.name", "reward_model.reward_manager")
    assert report(text).verdict == "dapo"


def test_the_buffer_under_another_reward_manager_is_dead(report):
    r = report(
        edited(PAPER_SCRIPT, "reward_manager.name=dapo", "reward_manager.name=naive")
    )
    assert faults(r) == {"soft_overlong"}
    assert sum("overlong_buffer" in k.key for k in r.no_effect) == 3
    assert r.changes() == ["reward.reward_manager.name=dapo"]


def test_l_max_must_be_the_generation_cap(report):
    old = "max_resp_len=${max_response_length}"
    r = report(edited(PAPER_SCRIPT, old, "max_resp_len=16384"))
    assert faults(r) == {"soft_overlong"}
    assert r.changes() == ["+reward.reward_kwargs.max_resp_len=20480"]


def test_symmetric_clip(report):
    r = report(edited(PAPER_SCRIPT, "clip_ratio_high=0.28", "clip_ratio_high=0.2"))
    assert faults(r) == {"clip_higher"}
    assert r.changes() == ["actor_rollout_ref.actor.clip_ratio_high=0.28"]


def test_clip_ratio_alone_does_nothing_in_verl(report):
    r = report(
        "python -m verl.trainer.main_ppo algorithm.adv_estimator=grpo "
        "actor_rollout_ref.actor.clip_ratio=0.28"
    )
    assert found(r, "clip_higher").effective == {"eps_low": 0.2, "eps_high": 0.2}
    assert "actor_rollout_ref.actor.clip_ratio" in {k.key for k in r.no_effect}


def test_a_filter_on_the_shaped_reward(report):
    r = report(edited(PAPER_SCRIPT, "metric=acc", "metric=reward"))
    assert faults(r) == {"dynamic_sampling"}
    assert r.changes() == ["algorithm.filter_groups.metric=acc"]
    unset = report(PAPER_SCRIPT.replace("algorithm.filter_groups.metric=acc", ""))
    assert found(unset, "dynamic_sampling").effective["metric"] == "reward"


@pytest.mark.parametrize(
    ("old", "new", "mechanism", "change"),
    [
        ("loss_agg_mode=token-mean", "loss_agg_mode=seq-mean-token-mean",
         "token_level_loss", "actor_rollout_ref.actor.loss_agg_mode=token-mean"),
        ("entropy_coeff=0", "entropy_coeff=0.001",
         "token_level_loss", "actor_rollout_ref.actor.entropy_coeff=0"),
        ("filter_groups.enable=True", "filter_groups.enable=False",
         "dynamic_sampling", "algorithm.filter_groups.enable=True"),
        ("trainer.nnodes", "trainer.use_v1=False trainer.nnodes",
         "dynamic_sampling", "trainer.use_v1=True"),
        ("use_kl_loss=False", "use_kl_loss=True",
         "no_kl", "actor_rollout_ref.actor.use_kl_loss=False"),
        ("adv_estimator=grpo", "adv_estimator=gae",
         "group_advantage", "algorithm.adv_estimator=grpo"),
        ("rollout.n=16", "rollout.n=1",
         "group_advantage", "actor_rollout_ref.rollout.n=16"),
        ("mini_bsz=32", "mini_bsz=512",
         "updates_per_rollout", "actor_rollout_ref.actor.ppo_mini_batch_size=32"),
        ("penalty_factor=1.0", "log=False",
         "soft_overlong",
         "+reward.reward_kwargs.overlong_buffer_cfg.penalty_factor=1.0"),
    ],
)  # fmt: skip
def test_each_mechanism_of_verl_can_be_the_one_that_is_off(
    report, old, new, mechanism, change
):
    r = report(edited(PAPER_SCRIPT, old, new))
    assert faults(r) == {mechanism} and r.verdict == "not_dapo"
    assert change in r.changes()


@pytest.mark.parametrize(
    ("old", "new", "mechanism", "change"),
    [
        ("epsilon_high=0.28, ", "", "clip_higher", "epsilon_high=0.28"),
        ("epsilon_high=0.28", "epsilon_high=0.0", "clip_higher", "epsilon_high=0.28"),
        ('loss_type="dapo"', 'loss_type="grpo"', "token_level_loss",
         "loss_type='dapo'"),
        ("beta=0.0", "beta=0.04", "no_kl", "beta=0.0"),
        ("num_generations=16", "scale_rewards='batch'", "group_advantage",
         "scale_rewards='group'"),
        ("steps_per_generation=16", "seed=1", "updates_per_rollout",
         "steps_per_generation=16"),
        ("max_completion_len=CAP", "max_completion_len=16384", "soft_overlong",
         "reward_funcs=[..., get_soft_overlong_punishment(20480, 4096)]"),
    ],
)  # fmt: skip
def test_each_mechanism_of_trl_can_be_the_one_that_is_off(
    report, old, new, mechanism, change
):
    r = report(edited(TRL_DAPO, old, new), "train.py")
    assert faults(r) == {mechanism}
    assert change in r.changes()


def test_trl_without_a_refilling_trainer_has_no_dynamic_sampling(report):
    r = report(TRL_DAPO.replace("DynamicSamplingTrainer", "MyTrainer"), "train.py")
    assert faults(r) == {"dynamic_sampling"}


def test_a_misspelt_field_of_trl_is_refused(report):
    r = report(edited(TRL_DAPO, "epsilon_high", "eps_high"), "train.py")
    assert [k.key for k in r.refused] == ["eps_high"]
    r = report("epsilon_hihg: 0.28\nloss_type: dapo\nmodel_name_or_path: m\n", "c.yaml")
    assert "did you mean epsilon_high" in r.refused[0].why
    assert any("model_name_or_path" in note for note in r.notes)


def test_yaml_and_json_of_both_engines(report):
    r = report("loss_type: dapo\nepsilon: 0.2\nepsilon_high: 0.28\n", "c.yaml")
    assert (r.engine, found(r, "clip_higher").status) == ("trl", "dapo")
    assert found(r, "soft_overlong").status == "unknown"
    r = report('{"epsilon_high": 0.28, "beta": "1e-3"}', "c.json")
    assert "no_kl" in faults(r)
    tree = "actor_rollout_ref:\n  actor:\n    clip_ratio_high: 0.28\n    clip_hihg: 1\n"
    r = report(tree, "verl.yaml")
    assert (r.engine, found(r, "clip_higher").status) == ("verl", "dapo")
    assert [k.key for k in r.no_effect] == ["actor_rollout_ref.actor.clip_hihg"]
    r = report('["actor_rollout_ref.actor.clip_ratio_high=0.28"]', "list.json")
    assert found(r, "clip_higher").effective["eps_high"] == 0.28
    r = report("accelerate launch grpo.py --loss_type dapo --epsilon_high 0.28", "x.sh")
    assert (r.engine, found(r, "clip_higher").status) == ("trl", "dapo")


def test_what_only_a_run_knows_is_unknown(report):
    r = report(PAPER_SCRIPT.replace("clip_ratio_high=0.28", 'clip_ratio_high="$1"'))
    assert found(r, "clip_higher").status == "unknown" and r.verdict == "unknown"
    code = "import os\nc = GRPOConfig(epsilon_high=float(os.environ['E']), **more())\n"
    r = report(code, "run.py")
    assert found(r, "clip_higher").status == "unknown"
    assert any("only known to a run" in note for note in r.notes)


def test_python_is_never_executed(report, tmp_path):
    mark = tmp_path / "ran"
    code = f"open({str(mark)!r}, 'w')\nGRPOConfig(epsilon=__import__('os').getpid())"
    report(code, "run.py")
    assert not mark.exists()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "empty.sh"),
        ("hello world\n", "notes.txt"),
        ("print('no config')\n", "a.py"),
        ("def broken(:\n", "a.py"),
        ("x = " + "(" * 5000, "a.py"),
        ("GRPOConfig(epsilon=" + "1+" * 4000 + "1)", "a.py"),
        ("- 1\n- 2\n", "c.yaml"),
        ("services:\n  web: {image: x}\n", "compose.yaml"),
        ("a: [1, 2\n", "c.yaml"),
        ("a: &a [x, x]\nb: !!python/object/apply:os.system ['id']\n", "c.yaml"),
        ("{", "c.json"),
        ("[" * 100_000, "c.json"),
        ("null", "c.json"),
    ],
)
def test_what_is_not_a_configuration_is_one_line_and_exit_2(
    tmp_path, capsys, text, name
):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert main(["check-config", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert name in captured.err and "GRPOConfig" in captured.err


def test_a_yaml_that_unfolds_without_end_is_refused(tmp_path):
    levels = ["a0: &a0 {k: 1}"]
    for i in range(1, 30):
        levels.append(f"a{i}: &a{i} {{x: *a{i - 1}, y: *a{i - 1}}}")
    path = tmp_path / "bomb.yaml"
    path.write_text("\n".join(levels), encoding="utf-8")
    with pytest.raises(BadInput, match="more than"):
        check_config(path)


def test_missing_binary_and_folder_are_named(tmp_path):
    (tmp_path / "x.sh").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "none.sh", tmp_path / "x.sh", tmp_path):
        with pytest.raises(BadInput, match=path.name):
            check_config(path)


def test_command_prints_the_verdict(tmp_path, capsys):
    path = tmp_path / "run.sh"
    path.write_text(PAPER_SCRIPT, encoding="utf-8")
    assert main(["check-config", str(path)]) == 0
    text = capsys.readouterr().out
    assert "verdict: this run is DAPO" in text and "verl" in text
    assert main(["check-config", str(path), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["is_dapo"] is True and data["version"]
    assert data["mechanisms"]["clip_higher"]["effective"]["eps_high"] == 0.28


def test_tables_say_their_version_and_hold_what_the_checks_read():
    trl, verl = from_table("trl"), from_table("verl")
    assert (trl.version, verl.version) == ("1.16.0", "0.9.1")
    assert trl.defaults["loss_type"] == "dapo" and trl.defaults["epsilon_high"] is None
    assert verl.defaults["algorithm.filter_groups.metric"] == "reward"
    for name in ("gradient_accumulation_steps", "learning_rate", "output_dir"):
        assert name in trl.defaults


def test_names_come_from_an_installed_package(tmp_path, monkeypatch):
    folder = tmp_path / "verl" / "trainer" / "config"
    folder.mkdir(parents=True)
    (tmp_path / "verl" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (folder / "_generated_ppo_trainer.yaml").write_text("algorithm: {new_key: 3}\n")
    info = tmp_path / "verl-9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: verl\nVersion: 9.9\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    names.cache_clear()
    try:
        found = names("verl")
    finally:
        names.cache_clear()
    assert isinstance(found, Names)
    assert (found.version, found.source) == ("9.9", "installed")
    assert found.knows("algorithm.new_key")


def test_another_version_than_the_tested_one_is_said(report, monkeypatch):
    newer = Names("trl", "9.9", "installed", from_table("trl").defaults, frozenset())
    monkeypatch.setattr(names_module, "installed", lambda engine: newer)
    names.cache_clear()
    try:
        r = report("GRPOConfig(epsilon_high=0.28)", "a.py")
    finally:
        names.cache_clear()
    assert r.version == "9.9" and any("1.16.0" in note for note in r.notes)


@pytest.mark.data
def test_verls_own_answers_on_its_names(report, oracles):
    data = json.loads((oracles / "verl_hydra_names.json").read_text(encoding="utf-8"))
    r = report("\n".join(data["accepted"]))
    assert r.refused == []
    for rejected in data["rejected"]:
        text = f"{rejected[0]}\ndata.train_batch_size=512\n"
        assert [k.key for k in report(text).refused] == [rejected[0].split("=")[0]]


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=3,
)
TRL_KEYS = sorted(from_table("trl").own)
VERL_KEYS = [
    *(f"actor_rollout_ref.actor.clip_ratio_{side}" for side in ("low", "high", "c")),
    *("algorithm.filter_groups.enable", "algorithm.filter_groups.metric", "data.x"),
    *("data.train_batch_size", "actor_rollout_ref.actor.ppo_mini_batch_size"),
    *("reward.reward_manager.name", "data.max_response_length", "algorithm.a.b"),
    "reward.reward_kwargs.overlong_buffer_cfg.len",
]


@given(st.dictionaries(st.sampled_from([*TRL_KEYS, *VERL_KEYS]), ODD, min_size=1))
@settings(max_examples=60, deadline=None)
def test_any_values_get_a_report(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("odd") / "c.json"
    path.write_text(json.dumps(values), encoding="utf-8")
    found = check_config(path)
    assert render(found) and json.dumps(found.as_dict())


@given(st.text(max_size=200), st.sampled_from([".sh", ".py", ".yaml", ".json"]))
@settings(max_examples=60, deadline=None)
def test_any_text_is_a_report_or_one_error(tmp_path_factory, text, suffix):
    path = tmp_path_factory.mktemp("any") / f"c{suffix}"
    path.write_text(f"GRPOConfig({text}\ndata.a={text}", encoding="utf-8")
    with contextlib.suppress(BadInput):
        render(check_config(path))
