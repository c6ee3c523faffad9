"""Every command with bad, odd and hostile input: one line, exit 2, nothing written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from dapo_lib import cli
from dapo_lib.data.gsm8k import load_gsm8k
from dapo_lib.engines.check_config import check_config
from dapo_lib.errors import BadInput
from dapo_lib.publish import execute
from dapo_lib.publish.layout import Layout, find_layout

DEEP = "[" * 200_000 + "]" * 200_000
SEED = "train --recipe seed --offline --steps 20 --maximum-examples 8".split()
BAD = {
    "an unknown command": (["nope"], "nope"),
    "a newline for a command": (["tr\nain"], r"tr.+ain"),
    "an unknown option": (["train", "--nope"], "--nope"),
    "a value left out": (["train", "--steps"], "--steps"),
    "a huge number": (["train", "--steps", "9" * 30], "--steps"),
    "not a number": (["train", "--lr", "inf"], r"--lr.*inf"),
    "resume without a place": (["train", "--resume"], "--resume.*--out"),
    "resume of the seed recipe": ([*SEED, "--resume"], "--resume"),
    "lm without a place": (["train", "--setting", "lm"], "--out"),
    "an unknown arm": (
        ["train", "--setting", "lm", "--arm", "../x", "--out", "x"], r"--arm.*\.\./x",
    ),
    "candidate options for lm": (
        ["train", "--setting", "lm", "--mix", "hard", "--out", "x"], "--mix.*hard",
    ),
    "no such data": (["train", "--data", "no\nsuch"], "data: got .*such"),
    "out is a folder": ([*SEED, "--out", "."], "it is a folder"),
    "unknown arms": (["sweep", "--arms", "<script>"], "--arms.*<script>"),
    "no seeds": (["sweep", "--seeds", "0"], "--seeds.*0"),
    "no workers": (["sweep", "--workers", "0"], "--workers.*0"),
    "an unknown experiment": (["experiments", "show", "nope"], "nope.*known"),
    "a path for an experiment": (
        ["experiments", "show", "../../etc/passwd"], "file name.*plain name",
    ),
    "a path for a metric": (["metrics", "--experiment", "../x"], "plain name"),
    "a run of a path": (["experiments", "run", "../x"], r"\.\./x"),
    "a file that is not there": (
        ["verify", "no.jsonl", "--response", "r", "--reference", "a"], "no.jsonl",
    ),
    "a folder for a file": (["check-config", "."], "cannot read .*directory"),
    "an adapter that is not there": (["conform", "no/such.py"], "such.py"),
    "an adapter of no kind": (["conform", ":::"], ":::"),
    "no time": (["conform", "--timeout", "nan"], "--timeout.*nan"),
    "a language of no kind": (["book", "render", "--lang", "../en"], r"\.\./en"),
    "another language": (["notebooks", "--lang", "fr"], "--lang.*fr"),
    "over the sources": (
        ["notebooks", "--out", str(find_layout().notebooks)], "holds the sources",
    ),
    "an unknown notebook": (["book", "execute", "--only", "../01"], r"\.\./01"),
    "an unknown parameter": (["book", "execute", "--set", "fast=1"], "fast"),
    "a parameter without a value": (["book", "execute", "--set", "seed"], "name=value"),
    "a parameter of another type": (
        ["book", "execute", "--set", "seed='1; import os'"], "seed=.*expected a int",
    ),
    "a language by the back door": (
        ["book", "execute", "--set", "lang=../../x"], "lang=.*--lang",
    ),
    "a text for no notebook": (["book", "to-text", "../../etc"], r"\.\./\.\./etc"),
    "a text that is not there": (["book", "from-text", "04_x.md"], "no such file"),
}  # fmt: skip


def tree(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD)
def test_bad_input_is_one_line_exit_2_and_nothing_written(
    dapo, tmp_path, monkeypatch, arguments
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DAPO_DATA", raising=False)
    given, said = arguments
    code, out, err = dapo(*given)
    assert code == 2 and out == "", (code, out, err)
    assert err.startswith("dapo: error: ") and err.count("\n") == 1
    assert re.search(said, err), err
    assert "Traceback" not in err and tree(tmp_path) == []


def commands(group, *path: str):
    """The path of every command there is."""
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from commands(command, *path, name)
        else:
            yield (*path, name)


def test_every_command_there_is_refuses_what_it_does_not_know(
    dapo, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    dapo("--help")  # registers the commands
    every = list(commands(typer.main.get_command(cli.app)))
    assert len(every) > 15 and ("book", "promises") in every
    for path in every:
        code, out, err = dapo(*path, "--no-such-option")
        assert (code, out) == (2, "") and "--no-such-option" in err, path
        assert err.count("\n") == 1 and f"dapo {' '.join(path)} --help" in err
    assert tree(tmp_path) == []


ROWS = {
    "deep": DEEP,
    "a huge integer": '{"r": ' + "9" * 5000 + ', "a": "1"}',
    "NaN": '{"r": NaN, "a": "1"}',
    "half a pair": '{"r": "\\ud800", "a": "1"}',
    "NUL": '{"r": "\\u0000Answer: 1", "a": "1"}',
    "a list for a row": "[1, 2]",
    "a script": '{"r": "<script>alert(1)</script>", "a": "1"}',
    "a newline in a name": '{"r\\n": 1}',
}


@pytest.mark.parametrize("line", ROWS.values(), ids=ROWS)
def test_hostile_lines_are_counted_or_graded(dapo, tmp_path, line):
    path = tmp_path / "name with a space\nand ünïcode.jsonl"
    good = '{"r": "Answer: 1", "a": "1"}'
    path.write_text(f"{good}\n{line}\n{good}\n", encoding="utf-8")
    csv = tmp_path / "out.csv"
    code, out, err = dapo(
        "verify", path, "--response", "r", "--reference", "a", "--json", "--csv", csv
    )
    assert code == 0, err
    numbers = json.loads(out)
    assert numbers["correct"] >= 2
    assert numbers["correct"] + numbers["wrong"] + numbers["broken_lines"] == 3
    assert csv.exists() and tree(tmp_path) == sorted(["out.csv", path.name])


@pytest.mark.parametrize("line", [DEEP, '{"question": NaN, "answer": NaN}', "\x00"])
def test_hostile_problems_are_named_by_line(tmp_path, line):
    (tmp_path / "train.jsonl").write_text(line + "\n")
    with pytest.raises(BadInput, match=r"train\.jsonl, line 1"):
        load_gsm8k(tmp_path, "train")


HOSTILE_YAML = {
    "a call": "a: !!python/object/apply:os.mkdir ['MARK']\n",
    "a module": "a: !!python/module:os\n",
    "a new object": "a: !!python/object/new:os.mkdir {args: ['MARK']}\n",
    "aliases of aliases": "a: &a [x]\n"
    + "".join(f"{c}: &{c} [{', '.join([f'*{p}'] * 9)}]\n"
              for p, c in zip("abcdefgh", "bcdefghi", strict=True)),
    "deep": "[" * 5000,
    "a tab": "a:\n\t- b\n",
    "no mapping": "- 1\n- 2\n",
}  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE_YAML.values(), ids=HOSTILE_YAML)
def test_yaml_is_data_and_nothing_else(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "config.yaml"
    path.write_text(text)
    try:
        report = check_config(path)
    except BadInput as error:
        assert "config.yaml" in str(error) and "\n" not in str(error)
    else:
        assert json.dumps(report.as_dict()) is not None
    assert tree(tmp_path) == ["config.yaml"]  # nothing was called


CODE = {
    "a call": "import os\nos.mkdir('MARK')\n",
    "in a default": "GRPOConfig(beta=__import__('os').mkdir('MARK'))\n",
    "broken": "GRPOConfig(\n",
    "deep": "GRPOConfig(a=" + "(" * 5000 + ")\n",
}


@pytest.mark.parametrize("text", CODE.values(), ids=CODE)
def test_a_python_configuration_is_read_and_never_run(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "config.py"
    path.write_text(text)
    try:
        check_config(path)
    except BadInput as error:
        assert "config.py" in str(error) and "\n" not in str(error)
    assert tree(tmp_path) == ["config.py"]


@pytest.mark.parametrize("name", ["a b.json", "ä\n.json", "-x.json", "'; rm x.json"])
def test_odd_file_names_are_written_exactly(dapo, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    code, _, err = dapo(*SEED, f"--out={tmp_path / name}")
    assert code == 0, err
    assert tree(tmp_path) == [name] and json.loads(Path(name).read_text())


def test_a_parameter_is_a_value_and_never_code(tmp_path):
    from papermill.translators import PythonTranslator

    evil = "x'''\"\n__import__('os').mkdir('MARK')\n\\"
    scope: dict[str, object] = {}
    exec(PythonTranslator.codify({"profile": evil}), scope)
    assert scope["profile"] == evil and not Path("MARK").exists()
    notebook = find_layout().chapters()[0]
    job = execute.plan(Layout(tmp_path), notebook, "en", {"profile": evil})
    assert job.values["profile"] == evil and job.output.is_relative_to(tmp_path)


def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    shell = f"{sys.executable} -m dapo_lib.cli experiments list | head -n 1"
    done = subprocess.run(
        ["sh", "-c", shell],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PYTHONUNBUFFERED": "1",  # line by line: the pipe may break anywhere
        },
    )
    assert done.stderr == "" and done.stdout.count("\n") == 1
