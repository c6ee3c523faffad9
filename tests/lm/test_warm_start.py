"""Warm starts: cached, published, damaged; and that fitting fits."""

import pytest
import torch

from dapo_lib.errors import BadInput, DamagedFile
from dapo_lib.lm import warm_start as w
from dapo_lib.lm.model import ModelConfig

TINY = w.WarmStart(
    task="digit_sum",
    model=ModelConfig(width=16, hidden=32, layers=1, heads=2),
    stages=(
        w.Stage(
            mixture=((1, {"rho": 1, "delta": 0}),),
            steps=3,
            lr=1e-3,
            lr_end=1e-4,
            sequences=8,
        ),
    )
    * 2,
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DAPO_CACHE", str(tmp_path))
    return tmp_path / "warm_starts"


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_fitted_and_cached_weights_are_equal(folder, monkeypatch):
    fitted = weights(w.warm_model(TINY))
    assert len(list(folder.glob("*.json"))) == 2  # both stages
    monkeypatch.setattr(w, "fit", lambda *_: pytest.fail("fitted again"))
    assert torch.equal(weights(w.warm_model(TINY)), fitted)


def test_a_damaged_cache_entry_is_fitted_again(folder):
    fitted = weights(w.warm_model(TINY))
    for path in folder.glob("*.safetensors"):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 4
        path.write_bytes(data)
    assert torch.equal(weights(w.warm_model(TINY)), fitted)


def test_a_damaged_published_file_is_named(tmp_path, monkeypatch, folder):
    monkeypatch.setattr(w, "PUBLISHED", tmp_path / "published")
    path = w.publish(TINY, {"why": "test"})
    weights_file = path.with_suffix(".safetensors")
    weights_file.write_bytes(weights_file.read_bytes()[:-9])
    with pytest.raises(DamagedFile, match=path.stem):
        w.warm_model(TINY)


def test_every_published_warm_start_is_one_that_has_a_name():
    names = ("digit_sum", "digit_sum_rare", "allowed_letter", "lookup_letter")
    wanted = {f"warm_start_{c.task}_{c.key()}" for c in map(w.named, names)}
    found = {p.stem for p in w.PUBLISHED.glob("warm_start_*.safetensors")}
    assert found == wanted
    size = sum(p.stat().st_size for p in w.PUBLISHED.glob("warm_start_*"))
    assert size < 700_000


def test_fitting_lowers_the_loss():
    stage = TINY.stages[0].model_copy(update={"steps": 40, "lr": 3e-3})
    model = w.Decoder(TINY.model, torch.Generator().manual_seed(0))
    task = w.task_named("digit_sum")(size=1)
    losses = w.fit(model, task, stage, torch.Generator().manual_seed(0))
    assert losses[-1] < 0.8 * losses[0]


def test_the_learning_rate_warms_up_and_falls_to_its_end():
    stage = w.Stage(mixture=((1, {}),), steps=100, lr=1.0, lr_end=0.1, warmup=10)
    assert w._lr(stage, 0) == 0.1 and w._lr(stage, 9) == 1.0
    assert w._lr(stage, 10) == 1.0 and abs(w._lr(stage, 100) - 0.1) < 1e-12


def test_the_mixture_is_cut_by_weight():
    kinds = ((0.5, {"rho": 1.0, "delta": 0.0}), (0.5, {"rho": 0.0, "delta": 0.0}))
    stage = w.Stage(mixture=kinds, steps=1, lr=1, lr_end=0, sequences=10)
    task = w.task_named("digit_sum")(size=1)
    batch = w.demonstrate(task, stage, torch.Generator().manual_seed(0))
    assert (batch.length[5:] == 3).all() and (batch.length[:5] >= 4).all()


def test_another_seed_is_another_warm_start_and_names_are_checked():
    keys = {
        w.named(n, s).key() for n in ("digit_sum", "allowed_letter") for s in (0, 1)
    }
    assert len(keys) == 4
    with pytest.raises(BadInput, match="warm_start"):
        w.named("cold")
