"""The out-of-core order of rows equals a plain sort, whatever the memory, and leaves nothing behind."""

import numpy as np
import pytest

from streamcut import convert


@pytest.mark.parametrize(
    ("labels", "in_order"),
    [
        (np.arange(600) % 2, False),
        (np.arange(600) // 300, True),
        (-(np.arange(600) // 200), True),
        (np.arange(600) // 200 % 2, True),  # files of one class each, put together
        (np.random.default_rng(0).permutation(np.arange(600) < 6), False),
        (np.ones(600), False),
        (np.arange(60) // 30, False),
    ],
)
def test_order_by_label_is_noticed(tmp_path, labels, in_order):
    (tmp_path / "rows.svm").write_text("".join(f"{label:d} {1 + row % 9}:1\n" for row, label in enumerate(labels.astype(int))))
    as_they_come = convert(tmp_path / "rows.svm", tmp_path / "a.zarr", shard_nnz=100)
    assert as_they_come.label_order == [str(tmp_path / "a.zarr")] * in_order
    assert convert(tmp_path / "rows.svm", tmp_path / "b.zarr", shuffle=1).label_order == []
    assert convert(tmp_path / "a.zarr", tmp_path / "c.zarr").label_order == [str(tmp_path / "c.zarr")] * in_order


@pytest.mark.parametrize("y", [np.arange(9000.0), -np.arange(9000.0)])
def test_order_by_numbers_is_noticed(tmp_path, y):
    for name, values in (("in-order", y), ("mixed", np.random.default_rng(0).permutation(y))):
        (tmp_path / f"{name}.svm").write_text("".join(f"{value:g} 1:1\n" for value in values))
        found = convert(tmp_path / f"{name}.svm", tmp_path / f"{name}.zarr")
        assert bool(found.label_order) == (name == "in-order")
