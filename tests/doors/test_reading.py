"""Data in every form becomes the rows that it says, as pandas, SciPy and scikit-learn read it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import scipy.io
import scipy.sparse as sp
from doors.tables import table
from kit.stored import content
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

import streamcut


def test_features_are_those_of_scikit_learn(folder):
    frame = table()
    rows = frame[["site"]].to_dict("records")
    streamcut.convert(frame[["site", "click"]], "dictionary.zarr", labels="click")
    ours, theirs = content("dictionary.zarr")[0], DictVectorizer(sparse=False).fit_transform(rows)
    assert sorted(map(tuple, ours.T.tolist())) == sorted(map(tuple, theirs.T.tolist()))

    streamcut.convert(frame[["site", "click"]], "hashed.zarr", labels="click", hash_bits=10)
    hashed = FeatureHasher(1024, input_type="string").transform([[f"site={row['site']}"] for row in rows]).toarray()
    np.testing.assert_array_equal(content("hashed.zarr")[0], hashed)

    streamcut.convert(frame[["words", "click"]], "words.zarr", labels="click", text="words", dtype="float64")
    tfidf = TfidfVectorizer(token_pattern=r"(?u)\b\w\w+\b", sublinear_tf=True).fit_transform(frame["words"]).toarray()
    ours = content("words.zarr")[0]
    order = [min(range(tfidf.shape[1]), key=lambda k: abs(column - tfidf[:, k]).sum()) for column in ours.T]
    assert sorted(order) == list(range(tfidf.shape[1]))
    np.testing.assert_allclose(ours, tfidf[:, order], atol=1e-6)

    few = frame[["age", "click"]][:40]
    streamcut.convert(few, "numbers.zarr", labels="click", dtype="float64")
    ages = content("numbers.zarr")[0][:, 0]
    np.testing.assert_allclose(ages, (few["age"] - few["age"].mean()) / few["age"].std(ddof=0), atol=3e-3)


@pytest.mark.parametrize("bits", [3, 10])
def test_rows_of_many_columns_are_those_of_feature_hasher(bits, folder):
    """Numbers among them, some of them 0, some of them of a feature that categories or other numbers have, too."""
    rng, n = np.random.default_rng(0), 300
    columns: dict = {f"c{k}": rng.choice(["a", "b", "cc", None], n).tolist() for k in range(100)}
    columns |= {f"x{k}": rng.integers(-2, 3, n).astype(float).tolist() for k in range(50)}
    frame, options = pa.table({"y": [0, 1] * (n // 2), **columns}), {"missing": "zero", "standardise": False, "dtype": "float64"}
    streamcut.convert(frame, "t.zarr", labels="y", hash_bits=bits, **options)
    rows = [{name: value for name, value in row.items() if value is not None} for row in frame.drop_columns("y").to_pylist()]
    ours, theirs = content("t.zarr")[0], FeatureHasher(1 << bits, alternate_sign=False).transform(rows)
    assert abs(sp.csr_array(ours) - theirs).max() == 0


TEXTS = [
    "Hello World, hello a b cc",
    "",
    "the Cat sat on\tthe  mat ÄÖ Σίσυφος İstanbul",
    "x_1 ſ Ⱥbc 日本語 K\u00a0\u00a0kelvin",
    None,
]
TEXTS += [
    "a\u2003 b\x85\x1c c",
    "\U00010400\U00010428 \U0001f600\U0001f600 \u1680\u3000 é\u0301",
    "ab" * 40,
    "  ",
    "\ud7ff\ue000 \u07ff\u0800 zz",
]


@pytest.mark.parametrize("ngrams", ["1,1", "1,2", "2,3", "chars:1,3", "chars:3,3"])
def test_words_of_texts_are_those_of_scikit_learn(ngrams, folder):
    rng, (kind, _, sizes) = np.random.default_rng(2), ngrams.rpartition(":")
    points = np.concatenate([rng.integers(1, 0xD800, 400), rng.integers(0xE000, 0x110000, 100), rng.integers(32, 0x250, 1500)])
    texts = [*TEXTS, *("".join(map(chr, rng.choice(points, 30))) for _ in range(150))]
    frame = pa.table({"y": [0, 1] * 80, "t": texts})
    how = {"ngram_range": tuple(map(int, sizes.split(","))), "analyzer": "char" if kind else "word"}
    given = {"labels": "y", "text": "t", "ngrams": ngrams, "text_weights": "counts"}
    streamcut.convert(frame, "h.zarr", hash_bits=12, **given)
    hasher = HashingVectorizer(n_features=1 << 12, alternate_sign=False, norm=None, **how)
    np.testing.assert_array_equal(content("h.zarr")[0], hasher.transform(text or "" for text in texts).toarray())
    streamcut.convert(frame, "d.zarr", **given)
    counter, names = CountVectorizer(**how), streamcut.open("d.zarr").recipe.names
    counts = counter.fit_transform(text or "" for text in texts).toarray()
    assert sorted(names) == sorted(counter.vocabulary_)
    np.testing.assert_array_equal(content("d.zarr")[0], counts[:, [counter.vocabulary_[name] for name in names]])


@pytest.fixture
def matrix(folder):
    """X.npz, X.mtx, y.txt, and the rows as a store, x.zarr: X (300, 20), y (300,)."""
    rng = np.random.default_rng(0)
    X, y = sp.random_array((300, 20), density=0.3, format="csr", rng=rng), rng.integers(0, 2, 300).astype(float)
    np.savetxt("y.txt", y)
    sp.save_npz("X.npz", X)
    scipy.io.mmwrite("X.mtx", X)
    streamcut.convert("X.npz", "x.zarr", labels="y.txt", dtype="float64")
    return X.toarray(), y


def ordered(X, y) -> list:
    """The rows in an order of their own."""
    return sorted(map(tuple, np.column_stack([X, y]).round(9).tolist()))


def test_matrices_are_read(matrix):
    streamcut.convert("X.mtx", "mtx.zarr", labels="y.txt", dtype="float64")
    for path in ("x.zarr", "mtx.zarr"):
        X, y = content(path)
        np.testing.assert_allclose(X, matrix[0], rtol=1e-12)
        np.testing.assert_array_equal(y, matrix[1])


def test_shuffled_rows_are_the_rows_in_an_order_of_the_seed(matrix):
    orders = []
    for number, seed in enumerate((3, 4, 3)):
        streamcut.convert("x.zarr", f"{number}.zarr", shuffle=seed, shard_nnz=200 + number)
        orders.append(content(f"{number}.zarr"))
        assert ordered(*orders[-1]) == ordered(*matrix)
        assert (orders[-1][1] != matrix[1]).mean() > 0.2
    assert (orders[0][1] != orders[1][1]).mean() > 0.2
    np.testing.assert_array_equal(orders[0][0], orders[2][0])


def test_the_parts_of_a_split_are_the_rows(matrix):
    streamcut.convert("x.zarr", "a.zarr", split=0.25, split_output="b.zarr")
    a, b = content("a.zarr"), content("b.zarr")
    assert ordered(np.vstack([a[0], b[0]]), np.concatenate([a[1], b[1]])) == ordered(*matrix)
    assert 40 <= min(len(a[1]), len(b[1])) <= 110
