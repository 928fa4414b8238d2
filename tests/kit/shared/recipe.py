"""What tests/io/test_recipe.py and tests/inside/io/test_recipe.py share."""

from __future__ import annotations

import numpy as np
import pytest

import streamcut
from streamcut import save_model

WORDS = ["red", "green", "blue", "sun", "moon", "rain", "tree", "stone", "bird", "fish"]


def text(n: int, seed: int, *, named: bool = True, base: int = 1) -> str:
    """Rows whose label depends on a few of the features."""
    rng, lines = np.random.default_rng(seed), []
    for _ in range(n):
        found = sorted(rng.choice(len(WORDS), 4, replace=False).tolist())
        label = "+1" if 0 in found or 3 in found else "-1"
        names = [WORDS[k] if named else str(k + base) for k in found]
        lines.append(" ".join([label, *(f"{name}:{0.5 + k % 3 / 7:.3f}" for name, k in zip(names, found, strict=True))]))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """named.svm and named.test.svm hashed into hashed.zarr and test.zarr; h.npz was trained on them."""
    place = tmp_path_factory.mktemp("recipe")
    (place / "named.svm").write_text(text(200, 1))
    (place / "named.test.svm").write_text(text(100, 2))
    for name, store in (("named.svm", "hashed.zarr"), ("named.test.svm", "test.zarr")):
        streamcut.convert(place / name, place / store, hash_bits=8)
    save_model(streamcut.train(str(place / "hashed.zarr")), place / "h.npz")
    return place
