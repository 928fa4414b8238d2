"""Data that Python programs hold: blocks appended to a new store, frames, arrays, and raw files given to `train`."""

from __future__ import annotations

import os
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from kit.stored import content

import streamcut
from streamcut.errors import BadInputError, MemoryBudgetError, UsageError

N, D = 300, 40
FORMATS = ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")


@pytest.fixture(scope="module")
def rows() -> tuple[sp.csr_array, np.ndarray]:
    rng = np.random.default_rng(3)
    X = sp.random_array((N, D), density=0.2, format="csr", rng=rng)
    return X, np.where(X[:, [0]].toarray()[:, 0] + 0.01 * rng.standard_normal(N) > 0.05, "spam", "ham")


@pytest.mark.parametrize("form", [*FORMATS, "dense", "frame", "sparse frame"])
def test_blocks_of_any_form_and_size_make_the_same_store(rows, tmp_path, form):
    X, y = rows

    def formed(block):
        if form in FORMATS:
            return block.asformat(form)
        if form == "sparse frame":
            return pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(block))
        return block.toarray() if form == "dense" else pd.DataFrame(block.toarray())

    with streamcut.create(tmp_path / "one.zarr", labels=["ham", "spam"], shard_nnz=400) as out:
        out.append(X, y)
    with streamcut.create(tmp_path / "many.zarr", labels=["ham", "spam"], shard_nnz=400) as out:
        for start in range(0, N, 37):
            out.append(formed(X[start : start + 37]), y[start : start + 37])
    found, labels = content(tmp_path / "many.zarr")
    np.testing.assert_array_equal(found, X.toarray())
    assert labels.tolist() == [float(word == "spam") for word in y]
    one, many = (streamcut.open(tmp_path / f"{name}.zarr") for name in ("one", "many"))
    assert one.manifest.fingerprint == many.manifest.fingerprint
    assert (many.recipe.names is None) == ("frame" not in form)
    assert out.statistics == many.manifest.statistics


def test_groups_weights_and_rows_without_labels(rows, tmp_path):
    X, _ = rows
    qid = np.repeat(np.arange(N // 10), 10)
    with streamcut.create(tmp_path / "q.zarr", shard_nnz=200) as out:
        for start in range(0, N, 45):  # groups go on in the next block
            part = slice(start, start + 45)
            out.append(X[part], qid[part] % 3, qid=qid[part], weight=1.0 + qid[part])
    assert out.statistics.groups == N // 10
    assert out.statistics.weight_sum == N + qid.sum()
    with streamcut.create(tmp_path / "none.zarr") as out:
        out.append(X)
    assert streamcut.open(tmp_path / "none.zarr").recipe.labels.none
    with pytest.raises(BadInputError, match="no labels"):
        streamcut.train(tmp_path / "none.zarr")


@pytest.mark.parametrize(
    ("block", "error", "reason"),
    [
        ({"y": ["ham", None, "ham"]}, BadInputError, r"row 7 \(0-based\): the label is missing"),
        ({"y": ["ham", "eggs", "ham"]}, BadInputError, r"row 7 .*'eggs' is none of 'ham', 'spam'"),
        ({"y": [0, 1, 2]}, BadInputError, r"row 8 .*label 2 is the number of none"),
        ({"y": [0, 1]}, BadInputError, "y has 2 values for 3 rows"),
        ({"y": None}, BadInputError, "some blocks have labels"),
        ({"X": np.ones((3, 4))}, BadInputError, "X has 4 columns, but the store has 3"),
        ({"X": np.array([[1, 2, 3], [1, np.nan, 2], [1, 1, 1]])}, BadInputError, r"row 7 .*value nan"),
        ({"X": np.array([["a", "b", "c"]] * 3)}, BadInputError, "not real numbers"),
        ({"X": np.ones(3)}, BadInputError, "1 dimensions"),
        ({"X": np.array([[1, 2, 3], [1, 1e200, 2], [1, 1, 1]])}, BadInputError, "overflows"),
        ({"y": [0, np.inf, 1]}, BadInputError, "label (is )?inf"),
        ({"weight": [1, -1, 1]}, BadInputError, "weight -1"),
        ({"qid": [1, 1, 1]}, BadInputError, "qid"),
        ({"X": pd.DataFrame(np.eye(3), columns=["a", "b", "d"])}, BadInputError, r"column 2 .* is 'd', and was 'c'"),
    ],
)
def test_a_bad_block_leaves_nothing(tmp_path, block, error, reason):
    good = {"X": pd.DataFrame(np.eye(3), columns=["a", "b", "c"]), "y": ["ham", "spam", "ham"]}
    blocks = [good, good, {**good, **block}]
    with pytest.raises(error, match=reason), streamcut.create(tmp_path / "bad.zarr", labels=["ham", "spam"]) as out:
        [out.append(**block) for block in blocks]
    assert os.listdir(tmp_path) == []


def test_what_create_refuses(rows, tmp_path):
    X, y = rows
    with pytest.raises(BadInputError, match="no rows"), streamcut.create(tmp_path / "a.zarr"):
        pass
    with pytest.raises(UsageError, match="39 features"):
        streamcut.create(tmp_path / "a.zarr", 39, feature_names=[f"{j}" for j in range(D)])
    with pytest.raises(UsageError, match="two labels"):
        streamcut.create(tmp_path / "a.zarr", labels=["a", "a"])
    out = streamcut.create(tmp_path / "a.zarr")
    with pytest.raises(UsageError, match=r"with streamcut\.create"):
        out.append(X, y)
    with pytest.raises(MemoryBudgetError), streamcut.create(tmp_path / "a.zarr", memory="30MB") as out:
        out.append(X, y)
    with streamcut.create(tmp_path / "a.zarr") as out:
        out.append(X, y)
    with pytest.raises(UsageError, match="exists"), streamcut.create(tmp_path / "a.zarr"):
        pass
    assert os.listdir(tmp_path) == ["a.zarr"]
    with streamcut.create(tmp_path / "a.zarr", force=True) as out:
        out.append(X[:5], y[:5])
    assert streamcut.open(tmp_path / "a.zarr").manifest.statistics.n_rows == 5


def test_a_row_that_memory_does_not_hold_is_refused_by_its_number(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = sp.csr_array((np.ones(6_000_002, np.float32), [*range(2), *range(6_000_000)], [0, 2, 6_000_002]))
    sp.save_npz("X.npz", X, compressed=False)
    np.save("y.npy", [0.0, 1.0])

    def created(memory):
        with streamcut.create("a.zarr", memory=memory, force=True) as out:
            out.append(X, [0.0, 1.0])

    def converted(memory):
        streamcut.convert("X.npz", "a.zarr", labels="y.npy", memory=memory, force=True)

    for make in (created, converted):
        with pytest.raises(MemoryBudgetError, match="at least") as refused:
            make("1MB")
        least = re.search(r"at least ([\d.]+ \w+)", str(refused.value))[1].replace(" ", "")
        with pytest.raises(MemoryBudgetError, match=r"row 1 \(0-based\): the row has 6,000,000 entries, and memory leaves room"):
            make(least)
        make("4GB")
        assert streamcut.open("a.zarr").manifest.statistics.max_row_nnz == 6_000_000


@pytest.mark.parametrize("first", ["numbers", "words"])
def test_a_store_that_is_gone_on_with_keeps_to_its_kind_of_labels_and_their_numbers(rows, tmp_path, first):
    X, _ = rows
    labels = {"numbers": [1.0, 2.0] * 150, "words": [f"word{(k // 40) % 5}" for k in range(N)]}

    def append(name: str, kind: str, *, resume: bool, whole: bool) -> None:
        with streamcut.create(tmp_path / name, shard_nnz=200, threads=1, resume=resume) as out:
            assert resume == (out.n_rows > 0)
            out.append(X[out.n_rows : N if whole else 150], labels[kind][out.n_rows : N if whole else 150])
            if not whole:
                raise KeyboardInterrupt

    append("whole.zarr", first, resume=False, whole=True)
    with pytest.raises(KeyboardInterrupt):
        append("a.zarr", first, resume=False, whole=False)
    with pytest.raises(BadInputError, match=rf"row \d+ .*labels were {first} before"):
        append("a.zarr", "words" if first == "numbers" else "numbers", resume=True, whole=True)
    append("a.zarr", first, resume=True, whole=True)
    np.testing.assert_array_equal(content(tmp_path / "a.zarr")[1], content(tmp_path / "whole.zarr")[1])
    assert streamcut.open(tmp_path / "a.zarr").recipe == streamcut.open(tmp_path / "whole.zarr").recipe
