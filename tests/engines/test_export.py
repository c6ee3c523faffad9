"""An export is whole, checked before it is written, and says what the engine loses."""

from __future__ import annotations

import os

import pytest
import yaml

from dapo_lib.cli import main
from dapo_lib.engines.export import export, version_warning
from dapo_lib.engines.render import render_fsdp
from dapo_lib.engines.rewards import RuleReward, score
from dapo_lib.engines.validate import validate
from dapo_lib.errors import BadInput
from dapo_lib.experiments.config import load_run


def run_cli(capsys, *arguments):
    code = main(list(arguments))
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_a_folder_of_each_engine(capsys, tmp_path):
    for engine, preset, names in (
        ("trl", "one-gpu", {"train.py", "fsdp.yaml", "run.yaml", "NOTES.md"}),
        ("verl", "dapo-32b", {"launch.sh", "reward.py", "run.yaml", "NOTES.md"}),
    ):
        out = tmp_path / engine
        code, said, _ = run_cli(capsys, "export", engine, preset, "--out", str(out))
        assert code == 0
        assert {p.name for p in out.iterdir()} == names
        assert "check-config: dapo" in said
        assert load_run(out / "run.yaml") == load_run(preset)
    assert os.access(tmp_path / "verl" / "launch.sh", os.X_OK)


def test_an_existing_folder_stays_without_force(capsys, tmp_path):
    out = tmp_path / "x"
    out.mkdir()
    (out / "mine.txt").write_text("keep")
    given = ["export", "trl", "one-gpu", "--out", str(out)]
    code, _, said = run_cli(capsys, *given)
    assert code == 2 and "--force" in said
    assert [p.name for p in out.iterdir()] == ["mine.txt"]
    assert run_cli(capsys, *given, "--force")[0] == 0
    assert (out / "mine.txt").read_text() == "keep"
    assert (out / "train.py").is_file()


def test_a_lost_mechanism_stops_and_says_which(capsys, tmp_path):
    out = tmp_path / "x"
    given = ["export", "verl", "dapo-32b", "--out", str(out)]
    lost = ["--set", "algorithm.overlong=filter"]
    code, _, said = run_cli(capsys, *given, *lost)
    assert code == 2 and "overlong_filter" in said and "--allow-loss" in said
    assert not out.exists()
    code, printed, _ = run_cli(capsys, *given, *lost, "--allow-loss")
    assert code == 0 and "lost: no overlong filtering" in printed
    assert "not_dapo" in printed
    assert "## Lost" in (out / "NOTES.md").read_text()


def test_an_untested_version_warns_with_the_tested_one(capsys, tmp_path):
    given = ["export", "trl", "one-gpu", "--out", str(tmp_path / "x")]
    _, _, said = run_cli(capsys, *given, "--engine-version", "0.9")
    assert "trl 0.9" in said and "trl 1.16.0" in said
    assert version_warning("verl", "0.9.1") is None


def test_our_own_yaml_is_printed(capsys, tmp_path):
    code, text, _ = run_cli(capsys, "export", "ours", "laptop")
    path = tmp_path / "run.yaml"
    path.write_text(text)
    assert code == 0 and load_run(path) == load_run("laptop")


@pytest.mark.parametrize(
    ("engine", "extra", "said"),
    [
        ("verl", {"actor_rollout_ref.actor.clip_ratio_hihg": 0.3}, "clip_ratio_high"),
        ("verl", {"+reward.reward_kwargs.overlong_bufer_cfg.len": 4}, "never read"),
        ("verl", {"+reward.nonsense": 4}, "no such option"),
        ("verl", {"+algorithm.adv_estimator": "grpo"}, "without"),
        ("verl", {"actor_rollout_ref.actor.optim.lr": "fast"}, "expected a float"),
        ("verl", {"trainer.nnodes": "two"}, "expected a int"),
        ("verl", {"algorithm.use_kl_in_reward": 1}, "expected a bool"),
        ("verl", {"data.gen_batch_size": 1536}, "has no effect"),
        ("verl", {"algorithm.filter_groups.max_num_gen_batches": 10}, "no effect"),
        ("trl", {"epsilon_hihg": 0.3}, "epsilon_high"),
        ("trl", {"learning_rate": "fast"}, "expected a float"),
        ("trl", {"use_bias_correction_kl": True}, "has no effect"),
    ],
)
def test_what_the_engine_s_own_validation_lets_pass(engine, extra, said):
    tree = load_run("dapo-32b").model_dump()
    run = type(load_run("dapo-32b"))(**{**tree, "extra": {engine: extra}})
    with pytest.raises(BadInput, match=said):
        validate(run, engine)


def test_options_by_the_engine_s_own_name_are_handed_on():
    tree = load_run("dapo-32b").model_dump()
    own = {"actor_rollout_ref.rollout.gpu_memory_utilization": 0.8}
    run = type(load_run("dapo-32b"))(**{**tree, "extra": {"verl": own}})
    assert validate(run, "verl").verdict == "dapo"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n- b\n", "a mapping"),
        ("a: [\n", "line"),
        ("name: x\n", "model: Field required"),
        ("1: 2\n", "keys"),
    ],
)
def test_a_broken_configuration_is_one_line(capsys, tmp_path, text, said):
    path = tmp_path / "run.yaml"
    path.write_text(text)
    code, _, printed = run_cli(capsys, "export", "ours", str(path))
    assert code == 2 and said in printed and printed.count("\n") == 1


@pytest.mark.parametrize(
    "change",
    ["algorithm.eps_low=2", "schedule.nonsense=1", "name", "name.x=1",
     "data.mode=guess", "data.prompt=no hole", "algorithm.l_cache=99999",
     "model.path=\"a\\nb\"",
     "schedule=[1]", "name=../up"],
)  # fmt: skip
def test_a_bad_change_is_one_line(capsys, change):
    code, _, printed = run_cli(capsys, "export", "ours", "laptop", "--set", change)
    assert code == 2 and printed.startswith("dapo: error: ")
    assert printed.count("\n") == 1


def test_an_unreadable_reference_gives_no_signal():
    found = [score(text, "a prime") for text in ("Answer: 7", "", "x")]
    assert {x["acc"] for x in found} == {0.0}


def test_the_reward_reads_text_and_messages():
    chat = [{"role": "assistant", "content": "So it is.\nAnswer: 7"}]
    reward = RuleReward("answer")
    assert reward(completions=[chat, chat], answer=["7", "8"], x=[1, 2]) == [1.0, -1.0]


def test_nothing_is_written_where_the_data_are_missing(tmp_path):
    out = tmp_path / "x"
    with pytest.raises(BadInput, match="no such file"):
        export(load_run("one-gpu"), "verl", out)
    assert not out.exists()


@pytest.mark.parametrize(
    ("dtype", "mixed"), [("float32", "no"), ("bfloat16", "bf16"), ("float16", "fp16")]
)
def test_the_fsdp_file_says_its_precision_as_text(dtype, mixed):
    made = yaml.safe_load(render_fsdp(load_run("laptop", [f"model.dtype={dtype}"])))
    assert made["mixed_precision"] == mixed  # a bare `no` would be false
    assert made["num_processes"] == 2 and made["distributed_type"] == "FSDP"
