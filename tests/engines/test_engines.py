"""What an export says, run or validated by the engines' own code.

Environments of their own (`make engines`); what was executed, with versions and
figures, goes to `_build/engines.json`. Left out: GPUs and rollout servers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from dapo_lib.conformance.ask import Adapter
from dapo_lib.conformance.environments import ADAPTERS, prepare
from dapo_lib.engines.environments import ENGINES
from dapo_lib.engines.export import export
from dapo_lib.experiments.config import Run, load_run, presets
from dapo_lib.files import write_json
from dapo_lib.objective import policy_loss

pytestmark = pytest.mark.engines
ROOT = Path(__file__).resolve().parents[2]
PEERS = Path(__file__).with_name("peers")
FACTS: dict[str, dict] = {}


@pytest.fixture(scope="module", autouse=True)
def facts():
    """Written once, by the tests that ran."""
    yield
    write_json(ROOT / "_build" / "engines.json", "dapo-book/engines/1", FACTS)


def python(engine: str) -> str:
    return prepare(ENGINES[engine], ROOT / "_build" / "envs", print)


def note(engine: str, **found: object) -> None:
    entry = FACTS.setdefault(engine, {"version": ENGINES[engine].package})
    entry.update(found)


def call(command, *, cwd=None, given=None, home=None):
    """Run a command in an engine's environment; its output."""
    clean = {k: v for k, v in os.environ.items() if k != "VIRTUAL_ENV"}
    clean |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    if home is not None:
        clean |= {"HOME": str(home), "DAPO_CACHE": str(home / "cache")}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=clean, input=given, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def result(output: str) -> dict:
    """What a peer's script printed after RESULT."""
    return json.loads(output.rpartition("RESULT ")[2].splitlines()[0])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    call([python("trl"), PEERS / "tiny.py", folder])
    return folder


def small(tiny) -> Run:
    base = load_run("laptop", ["schedule.group_size=8", "data.prompt={question}"])
    tree = base.model_dump(mode="json")
    tree["model"]["path"] = str(tiny / "model")
    tree["data"]["train"] = str(tiny / "problems.jsonl")
    return Run(**tree)


def torchrun(processes: int) -> list[str]:
    start = [python("trl"), "-m", "torch.distributed.run"]
    return [*start, "--standalone", "--nproc_per_node", str(processes)]


def test_trl_runs_the_exported_script_on_two_processes(tiny, tmp_path):
    out = tmp_path / "x"
    export(small(tiny), "trl", out)
    said = call([*torchrun(2), "train.py"], cwd=out)
    assert said.count("dynamic_sampling/kept") == 2  # one line a rollout
    assert (out / "runs/laptop/final/model.safetensors").is_file()
    note("trl", script="executed: 2 processes, 8 updates")
    with pytest.raises(AssertionError, match="processes: got 1, expected 2"):
        call([*torchrun(1), "train.py"], cwd=out)


def flat(tensors) -> torch.Tensor:
    return torch.cat([t.flatten().double() for t in tensors])


def test_one_and_two_processes_reach_the_same_weights(tiny, tmp_path):
    made = {}
    for n in (1, 2):
        out = tmp_path / f"{n}.pt"
        call([*torchrun(n), PEERS / "ddp.py", tiny, out])
        made[n] = torch.load(out)
        assert json.loads(made[n]["facts"])["world"] == n
    books = [json.loads(made[n]["facts"])["ledgers"] for n in (1, 2)]
    assert books[0] == books[1]
    assert books[0][0]["all_wrong"] > 0  # there was something to refill
    a, b, first = (flat(x) for x in (made[1]["after"], made[2]["after"],
                                     made[1]["before"]))  # fmt: skip
    assert float((a - first).norm() / first.norm()) > 1e-3  # they moved
    difference = float((a - b).norm() / a.norm())
    note("trl", one_against_two_processes=difference)
    assert difference < 1e-5


def test_ours_and_trl_have_the_same_loss_and_gradient(tiny):
    said = call([python("trl"), PEERS / "same_step.py", tiny, "float64"])
    found = json.loads(said.strip().splitlines()[-1])
    assert found["updates"] == 12 and found["clipped"] > 0.05
    note("trl", ours_against_trl=found)
    assert max(found["loss"], found["gradient"], found["advantage"]) < 1e-6


def words(script: Path, tmp_path: Path) -> list[str]:
    """The arguments that the shell makes of a launch script."""
    stand_in = tmp_path / "bin" / "python3"
    stand_in.parent.mkdir(exist_ok=True)
    code = "import json, sys; json.dump(sys.argv[1:], sys.stdout)"
    stand_in.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}" "$@"\n')
    stand_in.chmod(0o755)
    path = f"{stand_in.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", script], env={**os.environ, "PATH": path}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    module, *rest = json.loads(done.stdout)[1:]
    assert module == "verl.trainer.main_ppo"
    return rest


def ask_verl(request: dict) -> dict:
    given = json.dumps(request)
    return result(call([python("verl"), PEERS / "verl_check.py"], given=given))


def batches(count: int = 50) -> list[dict]:
    generator = torch.Generator().manual_seed(0)
    out = []
    for _ in range(count):
        rows, width = torch.randint(1, 9, (2,), generator=generator).tolist()
        old = -3 * torch.rand(rows, width, generator=generator) - 1.5
        ratio = 0.5 * torch.randn(rows, width, generator=generator).clamp(-2.9, 2.9)
        length = torch.randint(1, width + 1, (rows,), generator=generator)
        out.append(
            {
                "old": old.double(),
                "new": (old + ratio).double(),
                "mask": (torch.arange(width) < length[:, None]).long(),
                "advantage": torch.randn(rows, generator=generator).double(),
            }
        )
    return out


def test_verl_composes_validates_and_computes_what_we_compute(tmp_path):
    export(load_run("dapo-32b"), "verl", tmp_path / "x")
    given = batches()
    cases = [
        {"response": "Answer: 7", "answer": "7", "length": 18432},
        {"response": "Answer: 8", "answer": "7", "length": 5},
    ]
    found = ask_verl(
        {
            "words": words(tmp_path / "x" / "launch.sh", tmp_path),
            "batches": [{k: v.tolist() for k, v in b.items()} for b in given],
            "rewards": cases,
        }
    )
    assert found["values"] == {
        "clip": [0.2, 0.28],
        "reduction": "token-mean",
        "filter": [True, "acc"],
        "use_v1": True,
    }
    assert not found["reference_policy"] and not found["critic"]
    assert found["rewards"] == [{"reward": 0.5, "acc": 1}, {"reward": -1, "acc": 0}]
    rates = found["optimiser"]["rates"]
    assert rates[0] == 0 and rates[20] == pytest.approx(1e-6)
    worst = largest_difference(given, found["losses"])
    note("verl", paper_run="composed, validated", ours_against_verl=worst)
    assert worst < 1e-6


def largest_difference(given: list[dict], theirs: list[dict]) -> float:
    """Over loss and gradient of every batch, ours against a peer's."""
    worst = 0.0
    for batch, other in zip(given, theirs, strict=True):
        new = batch["new"].clone().requires_grad_()
        loss, _ = policy_loss(new, batch["old"], batch["advantage"], batch["mask"])
        loss.backward()
        gradient = other.get("gradient", other.get("grad"))
        each = (new.grad - torch.tensor(gradient, dtype=torch.float64)).abs().max()
        worst = max(worst, float(each), abs(loss.item() - other["loss"]))
    return worst


def test_trl_s_loss_is_ours_on_the_same_random_batches():
    given, theirs = batches(), []
    with Adapter(str(ADAPTERS / "trl.py"), python("trl")) as adapter:
        for batch in given:
            question = {
                "log_ratio": (batch["new"] - batch["old"]).tolist(),
                "advantages": batch["advantage"].tolist(),
                "mask": batch["mask"].tolist(),
                "eps_low": 0.2,
                "eps_high": 0.28,
            }
            theirs.append(adapter.ask("loss", question).value)
    worst = largest_difference(given, theirs)
    note("trl", loss_on_50_batches=worst)
    assert worst < 1e-6


@pytest.mark.parametrize("name", [n for n in presets() if n != "dapo-32b"])
def test_verl_composes_every_preset_and_reads_its_data(name, tiny, tmp_path):
    tree = load_run(name, ["data.prompt={question}"]).model_dump(mode="json")
    tree["model"]["path"] = str(tiny / "model")
    tree["data"] |= {"train": str(tiny / "problems.jsonl"), "validation": None}
    path = tmp_path / "run.yaml"
    path.write_text(json.dumps(tree))
    command = [python("verl"), "-m", "dapo_lib.cli", "export", "verl", path]
    call([*command, "--out", tmp_path / "x"])
    asked = words(tmp_path / "x" / "launch.sh", tmp_path)
    found = ask_verl({"words": asked, "data": True})
    assert found["data"] == {"rows": 64, "ground_truth": "0", "prompt": "01="}
    note("verl", **{name: "composed, validated, 64 rows read"})


def test_verl_refuses_what_we_refuse(tmp_path):
    export(load_run("dapo-32b"), "verl", tmp_path / "x")
    typo = "actor_rollout_ref.actor.clip_ratio_hihg=0.3"
    asked = [*words(tmp_path / "x" / "launch.sh", tmp_path), typo]
    assert "clip_ratio_hihg" in ask_verl({"words": asked})["refused"]


def test_a_killed_ray_worker_loses_no_finished_run(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    command = [python("ray"), PEERS / "ray_sweep.py", tmp_path / "sweep"]
    first = result(call(command, home=home))
    assert first["lost"].startswith("LostWorker: sweep: a worker process died")
    assert first["stored"] == 5
    again = result(call(command, home=home))
    assert again["y"] == [0, 1, 4, 9, 16, 25]
    assert again["calls"] == first["calls"] + 1  # the lost one alone
    note("ray", local="2 workers, one killed, 1 of 6 runs made again")


def test_our_own_loop_trains_a_hugging_face_model(tiny, tmp_path):
    out = tmp_path / "run"
    call(
        [python("trl"), "-m", "dapo_lib.cli", "train", "--setting", "hf", "--offline",
         "--config", "laptop", "--model", tiny / "model", "--group-size", 8, "--data",
         tiny / "problems.jsonl", "--set", "data.prompt={question}", "--out", out]
    )  # fmt: skip
    lines = (out / "metrics.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["updates"] >= 4
    assert (out / "model" / "model.safetensors").is_file()
    parity = [python("trl"), "-m", "pytest", "-q", "--noconftest", "-p"]
    parity += ["no:cacheprovider", "--import-mode=importlib"]
    call([*parity, ROOT / "tests" / "lm" / "test_huggingface.py"], cwd=ROOT)
    note("trl", hugging_face="trained from a folder; parity tests passed")


def handed_over(tiny, out: Path) -> Path:
    """An export for two processes: 4 rollouts of 2 updates, a checkpoint every 2."""
    run = small(tiny).model_dump(mode="json")
    run["schedule"] |= {"rollouts": 4, "minibatches": 2}
    run["hardware"]["save_every"] = 2
    export(Run(**run), "trl", out)
    return out


def launched(folder: Path, *options: object, start: list | None = None) -> dict:
    """The exported script on two processes; the record of what it did."""
    record = folder / "record.json"
    start = torchrun(2) if start is None else start
    call([*start, PEERS / "exported.py", record, *options], cwd=folder)
    found = json.loads(record.read_text())
    assert found["world"] == 2
    return found


def sharded(folder: Path) -> list[object]:
    """accelerate's launcher with the exported FSDP configuration."""
    launcher = [python("trl"), "-m", "accelerate.commands.launch"]
    return [*launcher, "--config_file", folder / "fsdp.yaml"]


def final(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "runs/laptop/final/model.safetensors")


def same(one: dict, other: dict) -> bool:
    """Bit-equal tensors of the same names."""
    return one.keys() == other.keys() and all(
        torch.equal(value, other[name]) for name, value in one.items()
    )


@pytest.fixture(scope="module")
def straight(tiny, tmp_path_factory):
    """The exported script on two processes, from end to end."""
    folder = handed_over(tiny, tmp_path_factory.mktemp("straight") / "x")
    return folder, launched(folder)


def test_a_resumed_trl_run_sees_every_prompt_once(tiny, straight, tmp_path):
    whole, facts = straight
    folder = handed_over(tiny, tmp_path / "x")
    first = launched(folder, "--stop", 5)  # one update after the checkpoint
    assert first["updates"] == 5
    checkpoint = folder / "runs/laptop/checkpoint-4"
    cursor = json.loads((checkpoint / "dynamic_sampling.json").read_text())["cursor"]
    checkpoint.with_name("checkpoint-6").mkdir()  # killed while it was written
    second = launched(folder, "--resume")
    before = [draw for draw in first["drawn"] if draw[0][0] < cursor]
    assert second["drawn"][0][0][0] == cursor and len(before) < len(first["drawn"])
    assert before + second["drawn"] == facts["drawn"]
    assert second["total"] == facts["total"]  # the ledger of both parts
    assert facts["total"]["all_wrong"][0] > 0
    numbers = [i for ids, _ in facts["drawn"] for i in ids]
    assert numbers == list(range(facts["cursor"]))
    assert same(final(folder), final(whole))
    note("trl", resumed="2 + 2 rollouts as 4: prompts, ledger, weights bit-equal")


def test_the_exported_script_runs_sharded(tiny, straight, tmp_path):
    whole, facts = straight
    folder = handed_over(tiny, tmp_path / "x")
    start = sharded(folder)
    first = launched(folder, "--fsdp", "--stop", 4, start=start)
    second = launched(folder, "--fsdp", "--resume", start=start)
    for found in (first, second):
        assert (found["kind"], found["sharded"]) == ("FSDP", ["DTensor"])
    assert facts["sharded"] == ["Parameter"]
    assert first["drawn"] + second["drawn"] == facts["drawn"]
    a, b = (flat(final(x)[k] for k in final(whole)) for x in (whole, folder))
    difference = float((a - b).norm() / a.norm())
    note("trl", fsdp="2 gloo processes, resumed", fsdp_against_ddp=difference)
    assert difference < 1e-5


def test_where_accelerate_takes_ddp_for_fsdp_the_script_says_so(tiny, tmp_path):
    folder = handed_over(tiny, tmp_path / "x")
    said = call([*sharded(folder), "train.py"], cwd=folder)
    assert said.count("FSDP: accelerate shards on GPUs only") == 1
    assert (folder / "runs/laptop/final/model.safetensors").is_file()


def hf_command(tiny) -> list[str]:
    said = "train --setting hf --offline --config laptop --group-size 8 --iterations 6"
    changes = ["data.prompt={question}", "hardware.save_every=2"]
    changes += [f"data.validation={tiny / 'problems.jsonl'}", "evaluation.top_p=1e-6"]
    command = [*said.split(), "--model", str(tiny / "model")]
    command += ["--data", str(tiny / "problems.jsonl")]
    return command + [x for change in changes for x in ("--set", change)]


def hf_result(folder: Path) -> tuple[list[dict], dict, bytes]:
    """Records without the clock, the last checkpoint's tensors, the saved model."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    rows = [{**json.loads(line), "cpu_seconds": 0} for line in lines]
    newest = max((folder / "checkpoints").glob("*.safetensors"))
    model = (folder / "model" / "model.safetensors").read_bytes()
    return rows, load_file(newest), model


def test_kills_change_nothing_in_our_own_loop_on_a_hugging_face_model(tiny, tmp_path):
    kills = ROOT / "tests" / "soak" / "kills.py"
    command = [python("trl"), kills, 3, 2, 0, *hf_command(tiny)]
    said = call([*command, "--out", tmp_path / "{}", "--resume"])
    found = json.loads(said.splitlines()[-1])
    assert found["killed"] >= 6
    rows, tensors, model = hf_result(tmp_path / "whole")
    assert [r["rollout"] for r in rows] == list(range(7))
    assert sum(r.get("rounds", 0) for r in rows) > 6  # there was something to refill
    for n in range(found["runs"]):
        other_rows, others, other_model = hf_result(tmp_path / f"run-{n}")
        assert other_rows == rows
        assert same(others, tensors) and other_model == model
    # at top_p 1e-6 all answers to a question are the same one
    assert all(r["eval_pass"] == r["eval_accuracy"] for r in rows if "eval_pass" in r)
    note("trl", hugging_face_resume=f"{found['killed']} kills, bit-equal")


def test_prompts_from_what_datasets_saves_and_names_without_a_network(tiny):
    found = result(call([python("trl"), PEERS / "data_folders.py", tiny]))
    for name, count in (
        ("rows", 6), ("splits", 6), ("one split", 2), ("parquet", 6), ("lines", 6),
    ):  # fmt: skip
        assert found[name]["code"] == 0, found[name]
        assert f": {count} questions, 0 left out" in found[name]["out"][0]
    for name, said in (
        ("no train", "no split 'train', only test, dev; give"),
        ("half", "datasets cannot load it"),
        ("name", "openai/gsm8k:main:train: no such file, and datasets says"),
    ):
        assert found[name]["code"] == 2 and found[name]["out"] == []
        (line,) = found[name]["error"]
        assert line.startswith("dapo: error: ") and said in line
    note("trl", prompts="data sets saved, Parquet, JSON lines; a name offline: exit 2")
