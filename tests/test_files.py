"""Atomic writes and checksummed JSON: whole, or refused by name."""

import json
import os
import random

import pytest

from dapo_lib.errors import BadInput, DamagedFile
from dapo_lib.files import (
    check_writable,
    read_json,
    sole_writer,
    write_bytes,
    write_json,
)

PAYLOAD = {"metrics": {"accuracy": 0.7578125}, "seeds": [1, 2], "text": "裁剪"}


def test_a_payload_comes_back_with_its_schema(tmp_path):
    write_json(tmp_path / "a.json", "s/1", PAYLOAD)
    assert read_json(tmp_path / "a.json", "s/1") == {"schema": "s/1", **PAYLOAD}


def test_another_schema_is_refused(tmp_path):
    write_json(tmp_path / "a.json", "s/1", PAYLOAD)
    with pytest.raises(DamagedFile, match=r"a\.json: not a s/2 file"):
        read_json(tmp_path / "a.json", "s/2")


@pytest.mark.parametrize("part", range(10))
def test_a_truncated_file_is_refused(tmp_path, part):
    path = tmp_path / "a.json"
    write_json(path, "s/1", PAYLOAD)
    data = path.read_bytes()
    path.write_bytes(data[: len(data.rstrip()) * part // 10])
    with pytest.raises(DamagedFile, match=r"a\.json"):
        read_json(path, "s/1")


def test_fifty_flipped_bits_are_noticed_or_change_nothing(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, "s/1", PAYLOAD)
    data, rng = path.read_bytes(), random.Random(0)
    for _ in range(50):
        flipped = bytearray(data)
        at = rng.randrange(len(data))
        flipped[at] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(flipped))
        try:  # a flip in white space may leave the same value
            assert read_json(path, "s/1") == {"schema": "s/1", **PAYLOAD}
        except DamagedFile:
            continue


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_bytes(path, b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(BadInput, match=r"cannot write .*a\.json: No space left"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.json"]


def test_not_finite_numbers_are_never_written(tmp_path):
    with pytest.raises(ValueError, match="Out of range float"):
        write_json(tmp_path / "a.json", "s/1", {"x": float("nan")})
    assert not (tmp_path / "a.json").exists()


def test_an_unwritable_place_is_named_before_work(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadInput, match="not a writable folder"):
        check_writable(tmp_path / "file" / "a.json")
    with pytest.raises(BadInput, match="it is a folder"):
        check_writable(tmp_path)


def test_the_text_on_disk_is_plain_sorted_json(tmp_path):
    write_json(tmp_path / "a.json", "s/1", PAYLOAD)
    body = json.loads((tmp_path / "a.json").read_text())
    assert list(body) == sorted(body)


@pytest.mark.parametrize("folder", [True, False])
def test_one_writer_at_a_time_and_then_the_next(tmp_path, folder):
    out = tmp_path / "new" / "run"
    with sole_writer(out, folder=folder):
        assert len(list(tmp_path.rglob(".*lock"))) == 1
        for same in (out, tmp_path / "new" / ".." / "new" / "run"):
            with (
                pytest.raises(BadInput, match=r"--out: another run is writing .*run; "),
                sole_writer(same, folder=folder),
            ):
                raise AssertionError("entered")
        with sole_writer(tmp_path / "other", folder=folder):  # not in the way
            pass
    assert os.listdir(tmp_path) == []  # nothing written: nothing is left
    with pytest.raises(KeyError), sole_writer(out, folder=folder):
        write_bytes(out / "a" if folder else out, b"kept")
        raise KeyError
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == [
        "a" if folder else "run"
    ]
    with sole_writer(out, folder=folder):
        pass


def test_a_place_that_cannot_be_held_is_named(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for out in (tmp_path / "file", tmp_path / "file" / "run", tmp_path / "a\0b"):
        with (
            pytest.raises(BadInput, match=r"cannot write .*; choose"),
            sole_writer(out, folder=True),
        ):
            raise AssertionError("entered")
    assert os.listdir(tmp_path) == ["file"]
