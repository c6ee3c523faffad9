"""The command line: exit codes and one clear line for every kind of bad input."""

import json
import os
import re
from pathlib import Path

import pytest

from dapo_lib.cli import main

SEED = "train --recipe seed --offline --steps 20 --maximum-examples 8".split()


def run(capsys, *arguments):
    code = main([str(a) for a in arguments])
    return code, *capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--nope"], "--nope"),
        (["trian"], "trian"),
        (["train", "--dataset", "mnist"], "--dataset.*mnist"),
        (["train", "--recipe", "best"], "--recipe.*best"),
        (["train", "--algorithm", "ppo2"], "--algorithm.*ppo2"),
        (["train", "--group-size", "1"], "--group-size.*1"),
        (["train", "--steps=-3"], "--steps.*-3"),
        (["train", "--steps", "many"], "--steps.*many"),
        (["train", "--eps-low", "1.5"], "--eps-low.*1.5"),
        (["train", "--eps-high=-0.1"], "--eps-high.*-0.1"),
        (["train", "--eps-high", "nan"], "--eps-high.*nan"),
        (["train", "--lr", "0"], "--lr.*0"),
        ([*SEED, "--mix", "hard"], "--mix.*hard"),
        ([*SEED, "--algorithm", "grpo"], "--algorithm.*grpo"),
        ([*SEED, "--data", "/no/such"], "data.*/no/such"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(capsys, arguments, named):
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert re.search(named, err)
    assert err.startswith("dapo: error: ") and err.count("\n") == 1
    assert out == ""


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "empty"),
        ('{"question": "q", "answer": "#### 1"}\nnot json\n', "line 2"),
        ('{"question": "q"}\n', "line 1.*answer"),
        ('{"question": "q", "answer": "no number"}\n', "line 1.*####"),
    ],
)
def test_a_malformed_data_file_names_its_line(capsys, tmp_path, text, named):
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text(text)
    out_file = tmp_path / "out.json"
    code, _, err = run(capsys, *SEED, "--data", tmp_path, "--out", out_file)
    assert code == 2 and err.count("\n") == 1
    assert re.search(rf"train\.jsonl.*{named}", err)
    assert not out_file.exists()


def test_an_unwritable_out_is_refused_before_training(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    code, out, err = run(capsys, *SEED, "--out", tmp_path / "file" / "x.json")
    assert code == 2 and "file" in err and out == ""


def test_help_exits_0(capsys):
    code, out, _ = run(capsys, "train", "--help")
    assert code == 0 and "--group-size" in out


@pytest.mark.data
def test_the_seed_recipe_prints_and_writes_the_published_table(capsys, tmp_path):
    if "DAPO_DATA" not in os.environ:
        if os.environ.get("CI"):
            pytest.fail("CI has GSM8K: set DAPO_DATA")
        pytest.skip("needs GSM8K: set DAPO_DATA")
    out_file = tmp_path / "seed.json"
    options = (
        "train --algorithm dapo --dataset gsm8k-candidate --recipe seed "
        "--maximum-examples 512 --steps 300 --group-size 4 --seed 42 --offline --out"
    )
    code, out, _ = run(capsys, *options.split(), out_file)
    assert code == 0
    for figures in ("0.1641     0.7578", "0.3126     0.7996", "0.0000     1.0870"):
        assert figures in out
    assert "refreshed 18 times" in out and "gsm8k: train 7473" in out
    body = json.loads(Path(out_file).read_text())
    assert body["metrics"]["trained"]["accuracy"] == 0.7578125
    assert abs(body["metrics"]["trained"]["kl_reference"] - 1.0870484) < 1e-6
    assert body["metrics"]["untrained"]["accuracy"] == 0.1640625
    assert body["provenance"]["data"]["sha256"]["train"].startswith("17f347dc5147")
    assert {"schema", "config", "diagnostics"} <= set(body)
