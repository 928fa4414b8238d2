"""Several stores made by one recipe are one data set: the bits are those of one store with the same shards."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut.errors import BadInputError, UsageError

N, ENTRIES = 500, 5  # 100 rows are a shard
OPTIONS = {"solver": "ocas", "C": 1.0, "max_passes": 6, "tol": 1e-9, "tol_relative": None}


def written(folder, features, *, weighted=False, grouped=False, backend="zarr"):
    """The paths of a store of all rows, and of two with the first 300 and the others."""
    rng = np.random.default_rng(4)
    indices = np.concatenate([np.sort(rng.choice(min(features, 90), ENTRIES, replace=False)) for _ in range(N)])
    X = sp.csr_array((rng.normal(size=N * ENTRIES), indices, np.arange(N + 1) * ENTRIES), shape=(N, features))
    columns = {"y": rng.integers(0, 2, N)}
    if weighted:
        columns["weight"] = rng.random(N)
    if grouped:
        columns["qid"] = np.arange(N) // 10
    paths = [str(folder / name) for name in ("whole", "a", "b")]
    for path, rows in zip(paths, (slice(0, N), slice(0, 300), slice(300, N)), strict=True):
        with streamcut.create(path, features, shard_nnz=100 * ENTRIES, backend=backend) as out:
            out.append(X[rows], **{name: column[rows] for name, column in columns.items()})
    return paths


@pytest.mark.parametrize(
    ("features", "columns", "options"),
    [
        (90, {}, {}),
        (90, {}, {"lanes": 3, "workers": 2, "scale": "std"}),
        (90, {"weighted": True}, {"loss": "logistic"}),
        (90, {"grouped": True}, {"task": "ranking"}),
        (90, {"backend": "hdf5"}, {"solver": "auto"}),
        (70_000, {}, {}),  # most features never occur
    ],
)
def test_the_bits_are_those_of_one_store(tmp_path, features, columns, options):
    whole, *parts = written(tmp_path, features, **columns)
    expected, found = (streamcut.train(data, **{**OPTIONS, **options}) for data in (whole, parts))
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert found.certificate == expected.certificate
    assert found.fingerprint == expected.fingerprint
    assert repr(streamcut.evaluate(found, parts)) == repr(streamcut.evaluate(expected, whole))


def test_the_first_difference_of_recipes_is_named(tmp_path):
    for name, header, ending in (("a", "y,x,c", ""), ("b", "y,x,c", ""), ("more", "y,x,c,extra", ",3")):
        words = "rs" if name == "b" else "pq"
        rows = [f"{k % 2},{k},{words[k % 2]}{ending}" for k in range(40)]
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *rows, ""]))
        streamcut.convert(tmp_path / f"{name}.csv", tmp_path / name, label="y", on_told=None)
    a, b, more = (str(tmp_path / name) for name in ("a", "b", "more"))
    with pytest.raises(BadInputError, match=r"more: prepared by another recipe than .*column 'extra' is used here and not there"):
        streamcut.train([a, more])
    with pytest.raises(BadInputError, match=r"column 'x' is|numbered anew"):
        streamcut.train([a, b])
    streamcut.convert(tmp_path / "b.csv", b, recipe=a, force=True, on_told=None)
    assert streamcut.train([a, b], max_passes=3).recipe == streamcut.open(a).recipe


def test_the_model_opens_them_again(tmp_path, run):
    _, *paths = written(tmp_path, 90)
    assert run("train", *paths, "-o", tmp_path / "m.npz", "--C", "0.1", "-q")[0] == 0
    assert streamcut.load_model(tmp_path / "m.npz").parameters["data"] == paths
    assert run("verify", tmp_path / "m.npz")[0] == 0
    with pytest.raises(UsageError, match="named twice"):
        streamcut.train([paths[0], paths[0]])


def test_columns_and_groups_that_do_not_join(tmp_path):
    for name, qid, weight in (
        ("plain", None, None),
        ("weighted", None, [1.0, 2.0]),
        ("first", [1, 2], None),
        ("next", [2, 3], None),
    ):
        with streamcut.create(tmp_path / name) as out:
            out.append(np.eye(2), [0, 1], qid=qid, weight=weight)
    with pytest.raises(BadInputError, match="some stores have qid or weights and others do not"):
        streamcut.train([str(tmp_path / "plain"), str(tmp_path / "weighted")])
    with pytest.raises(BadInputError, match=r"next: begins with qid 2, with which .*first ends"):
        streamcut.train([str(tmp_path / "first"), str(tmp_path / "next")])
