"""Every kind of file, cut at ten places and with fifty single bits flipped.

Found, named, never half-used; what can be made again is made again. Checkpoints:
tests/test_checkpoint.py.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch

from dapo_lib.data.gsm8k import PUBLISHED, Source, from_rows, resolve_data, sha256_of
from dapo_lib.errors import BadInput, DamagedFile
from dapo_lib.experiments import published
from dapo_lib.experiments.records import Recorder, load_records
from dapo_lib.experiments.sweep import Job, cached, run_cached
from dapo_lib.lm.model import Decoder, ModelConfig
from dapo_lib.lm.warm_start import Stage, WarmStart, read_weights, write_weights
from dapo_lib.publish import execute, fingerprint, prose, reference
from dapo_lib.publish.layout import Layout, find_layout

FOUND = (DamagedFile, BadInput)


def check(path: Path, read, damaged, *, named: str | None = None) -> int:
    """Reading a damaged file names it, or gives the whole value; returns how often
    the damage was noticed.
    """
    data, whole, noticed = path.read_bytes(), read(), 0
    for bad in damaged(data):
        path.write_bytes(bad)
        try:
            assert read() == whole  # a flip in white space
        except FOUND as error:
            assert (named or path.name) in str(error)
            assert "\n" not in str(error)
            noticed += 1
    path.write_bytes(data)
    assert read() == whole
    return noticed


def test_results_of_a_notebook(tmp_path, damaged):
    recorder = Recorder("03_x", "en", folder=tmp_path)
    recorder.record("gain", 0.25, low=0.1, high=0.4, seeds=10)
    path = recorder.save()
    assert check(path, lambda: load_records(path), damaged) >= 50


def test_the_reference_of_the_metrics(tmp_path, damaged):
    layout = Layout(tmp_path)
    layout.reference.parent.mkdir(parents=True)
    shutil.copy(find_layout().reference, layout.reference)
    assert check(layout.reference, lambda: reference.load(layout), damaged) >= 50


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_published_results(tmp_path, damaged, suffix):
    frame = pd.DataFrame({"arm": ["dapo"] * 30, "value": [k / 7 for k in range(30)]})
    path = published.save("a", frame, {"seeds": [0, 1]}, tmp_path)

    def read():
        return published.load("a", tmp_path).to_csv()

    noticed = check(path.with_suffix(suffix), read, damaged, named="a.")
    assert noticed == 60 if suffix == ".csv" else noticed >= 50


def test_every_published_result_is_whole():
    for name in published.names():
        assert len(published.load(name))


def square(config):
    return {"y": config["x"] ** 2}


def test_cache_entries_are_made_again(tmp_path, damaged):
    job = Job({"x": 5}, square)
    run_cached(job, tmp_path)
    path = tmp_path / f"{job.key}.json"
    data = path.read_bytes()
    for bad in damaged(data):
        path.write_bytes(bad)
        assert cached(job.key, tmp_path) in (None, {"y": 25})
        assert run_cached(job, tmp_path) == {"y": 25}
        assert cached(job.key, tmp_path) == {"y": 25}
    path.write_text('{"schema": "dapo-book/run/1", "result": NaN}')
    assert cached(job.key, tmp_path) is None


@pytest.mark.parametrize("suffix", [".safetensors", ".json"])
def test_warm_starts(tmp_path, damaged, suffix):
    stage = Stage(mixture=((1.0, {"rho": 0.2}),), steps=1, lr=0.1, lr_end=0.1)
    shape = ModelConfig(width=8, hidden=8, layers=1, heads=1)
    config = WarmStart(task="digit_sum", model=shape, stages=(stage,))
    path = tmp_path / "warm.json"
    write_weights(path, Decoder(shape, torch.Generator().manual_seed(0)), config, {})

    def read():
        weights = read_weights(path, config).state_dict()
        return [v.tolist() for v in weights.values()]

    noticed = check(path.with_suffix(suffix), read, damaged, named="warm")
    assert noticed == 60 if suffix == ".safetensors" else noticed >= 50


def test_executed_notebooks_and_their_results_are_made_again(tmp_path, damaged):
    layout = Layout(tmp_path)
    job = execute.Job(
        tmp_path / "01_a.ipynb", "en", {}, tmp_path / "executed" / "01_a.ipynb", "a key"
    )
    results = Recorder("01_a", "en", folder=layout.results)
    results.record("gain", 0.5)
    job.output.parent.mkdir()
    job.output.write_text(json.dumps({"cells": [], "metadata": {}}))
    execute.stamp(layout, job)
    assert execute.fresh(layout, job)
    for path in (job.output, layout.results / "01_a.en.json", job.stamp):
        data = path.read_bytes()
        value = _json(data)
        for bad in damaged(data):
            path.write_bytes(bad)
            blank = path == job.stamp and _json(bad) == value
            assert execute.fresh(layout, job) == blank
        path.write_bytes(data)
    assert execute.fresh(layout, job)


def _json(data: bytes):
    try:
        return json.loads(data)
    except ValueError:
        return None


def test_source_notebooks(tmp_path, damaged, monkeypatch):
    monkeypatch.setattr(fingerprint, "reachable", lambda code: [])  # the cells alone
    source = find_layout().chapters()[0]
    path = tmp_path / source.name
    path.write_bytes(source.read_bytes())
    key = fingerprint.key(prose.read(path), {})
    for number, bad in enumerate(damaged(source.read_bytes())):
        path.write_bytes(bad)
        if number < 10:
            with pytest.raises(DamagedFile, match=f"{path.name}: not a notebook"):
                prose.read(path)
            continue
        try:  # what a cell says or is tagged is in the key: it is executed again
            changed = fingerprint.key(prose.read(path), {}) != key
        except FOUND as error:
            assert path.name in str(error)
            continue
        assert changed or _cells(path) == _cells(source)


@pytest.mark.parametrize(
    "cell",
    [
        None,
        {"source": "x"},
        {"cell_type": "cnde", "source": "x"},
        {"cell_type": "code"},
        {"cell_type": "code", "source": 1},
        {"cell_type": "code", "source": ["x", None]},
        {"cell_type": "code", "source": "x", "metadata": []},
        {"cell_type": "code", "source": "x", "metadata": {"tags": {"a": 1}}},
    ],
)
def test_a_cell_that_is_none_is_named(tmp_path, cell):
    path = tmp_path / "a.ipynb"
    good = {"cell_type": "raw", "source": ["a", "b"], "metadata": {"tags": ["t"]}}
    path.write_text(json.dumps({"cells": [good]}))
    assert prose.read(path)["cells"] == [good]
    path.write_text(json.dumps({"cells": [good, cell]}))
    with pytest.raises(DamagedFile, match=r"a\.ipynb, cell 2: not a cell"):
        prose.read(path)


def _cells(path: Path):
    cells = prose.read(path)["cells"]
    return [(c["cell_type"], prose.source(c), prose.tags(c)) for c in cells]


def test_a_data_file_that_is_not_the_published_one_is_named(tmp_path, damaged):
    rows = [(f"What is {k} + {k}?", f"#### {2 * k}") for k in range(1, 30)]
    lines = [json.dumps({"question": q, "answer": a}) for q, a in rows]
    text = "\n".join(lines) + "\n"
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text(text)
    path = tmp_path / "train.jsonl"
    first = sha256_of(path)
    sums = {"train": first, "test": first}
    for bad in damaged(path.read_bytes()):
        path.write_bytes(bad)
        try:
            source = resolve_data(tmp_path).source
        except BadInput as error:
            assert "train.jsonl" in str(error) and "\n" not in str(error)
            continue
        assert source.sha256 != sums
        assert "not the published file" in source.describe()


@pytest.mark.data
def test_gsm8k_as_published_is_known_and_one_line_less_is_told(gsm8k):
    source = gsm8k.source
    assert source.sha256 == PUBLISHED and "not the published" not in source.describe()
    splits = {"train": gsm8k.train, "test": gsm8k.test[:-1]}
    rows = {
        split: [{"question": p.question, "answer": p.solution} for p in problems]
        for split, problems in splits.items()
    }
    assert from_rows("gsm8k", rows).source.altered() == ["test"]


def test_other_data_have_no_published_form():
    assert Source("embedded (en, seed 0)", {"train": "0" * 64}, {}).altered() == []
