"""The overview figure says what the library computes, in both languages."""

import numpy as np
import pytest

from dapo_lib import plots
from dapo_lib.diagrams import L_CACHE, L_MAX, mechanisms, panels


@pytest.fixture(autouse=True)
def any_font(monkeypatch):
    """The words, not the glyphs, are tested: no font has to be built for that."""
    monkeypatch.setattr(plots, "_chinese_font", lambda: "DejaVu Sans")


def test_panels_show_the_four_differences():
    shown = panels()
    ratio, low, high = shown["1"]
    below = ratio < 1.2
    assert np.array_equal(low[below], high[below]) and high[-1] > low[-1]
    _, alive, full = shown["2"]
    assert alive[0] == alive[-1] == 0 and alive[50] > 0.999 and (full == 1).all()
    length, sequence, token = shown["3"]
    assert np.allclose(token, 1) and (np.diff(sequence) < 0).all()
    length, cut, soft = shown["4"]
    assert (cut[length <= L_MAX] == 1).all() and (cut[length > L_MAX] == -1).all()
    assert np.array_equal(cut[:16], soft[:16]) and L_MAX - L_CACHE == 16
    assert soft[L_MAX - 1] == 0 and soft[-1] == -2


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_station_and_number_is_drawn(lang):
    fig = mechanisms(lang)
    texts = [t.get_text() for t in fig.axes[0].texts]
    assert {"1", "2", "3", "4"} <= set(texts) and len(texts) >= 10
    titles = [ax.get_title()[0] for ax in fig.axes[1:]]
    assert titles == ["1", "2", "3", "4"]


def test_another_language_is_refused():
    with pytest.raises(ValueError, match="lang"):
        mechanisms("de")
