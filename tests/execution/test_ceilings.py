"""Commands that use a model keep their --memory: they refuse before the work with a figure, and stay below what they got."""

from __future__ import annotations

from dataclasses import replace

import kit.shared.ceilings
import numpy as np
import pytest

import streamcut
from streamcut import load_model, save_model
from streamcut.errors import MemoryBudgetError

folder = kit.shared.ceilings.folder


pytestmark = pytest.mark.process


def test_arrays_are_refused(folder):
    with pytest.raises(MemoryBudgetError, match="2 rows"):
        streamcut.predict(folder / "m.npz", np.ones((2, 500)), memory="1MB")


def test_a_model_says_what_it_takes_before_it_takes_it(folder, tmp_path):
    model = load_model(folder / "m.npz")
    weights = np.zeros(5_000_000)
    weights[7] = 0.1
    save_model(replace(model, weights=weights, witnesses=()), tmp_path / "wide.npz")
    sizes: list[int] = []
    assert (load_model(tmp_path / "wide.npz", sizes.append).weights == weights).all()
    assert (tmp_path / "wide.npz").stat().st_size < 10**6
    assert sizes[0] >= weights.nbytes
    with pytest.raises(MemoryBudgetError, match=r"the model: 40\.0 MB"):
        streamcut.predict(tmp_path / "wide.npz", folder / "rows.zarr", memory="1MB")
