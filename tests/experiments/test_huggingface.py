"""A Hugging Face run's split, folder and refusals; no model is needed here.

The run itself needs transformers: tests/engines trains, kills and resumes it.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
import torch

from dapo_lib.cli import main
from dapo_lib.experiments import huggingface
from dapo_lib.experiments.config import load_run
from dapo_lib.lm import hf_memory
from dapo_lib.train import Schedule, State


def state(**extra) -> State:
    return State(None, None, None, None, extra=extra)


def test_a_resumed_run_keeps_its_split_while_it_fits(capsys):
    fresh = state()
    assert huggingface.resplit(Schedule(micro_batches=4), fresh).micro_batches == 4
    assert fresh.extra == {"micro_batches": 4}
    # more memory is free now: two would do
    again = huggingface.resplit(Schedule(micro_batches=2), fresh)
    assert again == Schedule(micro_batches=4)
    assert capsys.readouterr().out == ""


def test_less_memory_than_before_splits_finer_and_says_so(capsys):
    resumed = state(micro_batches=4)
    assert huggingface.resplit(Schedule(micro_batches=6), resumed).micro_batches == 6
    assert resumed.extra == {"micro_batches": 6}
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and "6 micro-batches an update, not 4" in said


class Part:
    """Something that transformers would save, or fail to."""

    def __init__(self, name, broken=False):
        self.name, self.broken = name, broken

    def save_pretrained(self, folder):
        folder.mkdir(exist_ok=True)
        (folder / self.name).write_text("half" if self.broken else "whole")
        if self.broken:
            raise OSError("No space left on device")


def test_the_saved_model_is_whole_or_absent(tmp_path):
    weights, words = "model.safetensors", "tokenizer.json"
    huggingface.save(tmp_path, Part(weights), Part(words))
    names = {p.name for p in (tmp_path / "model").iterdir()}
    assert names == {weights, words}
    with pytest.raises(OSError, match="No space"):
        huggingface.save(tmp_path, Part(weights, broken=True), Part(words))
    assert not (tmp_path / "model").exists()
    huggingface.save(tmp_path, Part(weights), Part(words))
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model" / weights).read_text() == "whole"


def test_without_the_package_one_line_says_so(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")  # put back what --offline sets
    command = ["train", "--setting", "hf", "--offline", "--device", "cpu"]
    code = main([*command, "--model", "no/such", "--out", str(tmp_path / "x")])
    said = capsys.readouterr().err
    assert code == 2 and said.count("\n") == 1 and "dapo-book[hf]" in said
    assert not (tmp_path / "x").exists()


def test_memory_decides_the_split_and_the_device_bounds_it(monkeypatch):

    shape = {"hidden_size": 8, "num_hidden_layers": 2, "vocab_size": 16}
    model = SimpleNamespace(
        config=SimpleNamespace(**shape),
        parameters=lambda: iter([torch.zeros(1)]),
        num_parameters=lambda: 1,
    )
    run = load_run("laptop")  # 32 responses, 4 updates: 8 each, 4 in a pass
    each = hf_memory.pass_bytes(model.config, 10 + run.schedule.l_max)
    for room, wanted in ((100, 2), (3, 3), (1, 8)):
        free = int((room + 0.5) * each / hf_memory.SHARE) + 12
        monkeypatch.setattr(hf_memory, "free_bytes", lambda _, free=free: free)
        found = huggingface.fitting(run, model, longest=10)
        assert found.micro_batches == wanted
