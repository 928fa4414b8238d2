"""Words, hashes and bins of tables next to slow references, whatever the blocks and threads."""

from __future__ import annotations

from itertools import pairwise

import kit.shared.tables
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.shared.tables import OPTIONS, write
from kit.stored import matrix
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.utils import murmurhash3_32

import streamcut
import streamcut.foundation.files
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.formats.registry import CSV
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.recipe.table import Column, Table
from streamcut.io.sources.source import Sizes
from streamcut.io.tables import kernels
from streamcut.io.tables.encoder import Encoder, Place, interval_names

frame = kit.shared.tables.frame


@pytest.mark.parametrize("bits", [None, 10])
def test_rows_depend_neither_on_blocks_nor_on_threads(frame, tmp_path, bits):
    text = pa.array(
        [
            f"{site} and {app} or {price}"
            for site, app, price in zip(*(frame[c].to_pylist() for c in ("site", "app", "price")), strict=True)
        ]
    )
    path = str(write(frame.append_column("text", text), tmp_path / "a.csv"))
    options = ConvertOptions(
        **{**OPTIONS, "text": "text", "hash_bits": bits, "ngrams": "1,2", "drop": "when", "numeric": "age:bin7,price"}
    )
    found = []
    for block, threads in ((1 << 20, 1), (1 << 10, 1), (3000, 3)):
        rows = CSV.open([path], options, "")
        rows.begin(Sizes(block // 8, 8 * block, threads=threads))
        chunks = [chunk for chunk, _ in rows.blocks()]
        columns = [np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("indices", "y")]
        values = np.concatenate([np.ones(chunk.nnz) if chunk.data is None else chunk.data for chunk in chunks])
        found.append([*columns, values, np.concatenate([np.diff(chunk.indptr) for chunk in chunks]), rows.recipe()])
        assert [chunk.first_row for chunk in chunks] == np.cumsum([0, *(chunk.n_rows for chunk in chunks)])[:-1].tolist()
    assert len(chunks) > 3
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            assert mine == theirs if isinstance(mine, Recipe) else (mine == theirs).all()


TEXTS = [
    "Hello World, hello a b cc",
    "",
    "the Cat sat on\tthe  mat ÄÖ Σίσυφος İstanbul",
    "x_1 ſ Ⱥbc 日本語 K\u00a0\u00a0kelvin",
    None,
]


@pytest.mark.parametrize(
    ("ngrams", "characters"), [((1, 1), False), ((1, 2), False), ((2, 3), False), ((1, 3), True), ((3, 3), True)]
)
def test_words_of_texts_are_those_of_scikit_learn(ngrams, characters):
    column = Column("t", "text", ngrams=ngrams, characters=characters, bare=True)
    options = {"ngram_range": ngrams, "analyzer": "char" if characters else "word"}
    batch = pa.record_batch({"t": TEXTS})
    place = Place("x", np.arange(len(TEXTS)), 0)
    found = Encoder(Recipe("table", 8, table=Table((column,)))).encode(batch, place)
    values = np.ones(len(found.indices)) if found.data is None else found.data
    X = sp.csr_array((values, found.indices, found.indptr), shape=(len(TEXTS), 256))
    expected = HashingVectorizer(n_features=256, alternate_sign=False, norm=None, **options).transform(t or "" for t in TEXTS)
    assert X.nnz == expected.nnz
    assert abs(X - expected).max() == 0
    learned = Encoder(Recipe("table", table=Table((column,))), learn=True, most=10_000)
    found = learned.encode(batch, place)
    vectorizer = CountVectorizer(**options)
    counts = vectorizer.fit_transform(t or "" for t in TEXTS)
    assert sorted(learned.names()) == sorted(vectorizer.vocabulary_)
    values = np.ones(len(found.indices)) if found.data is None else found.data
    X = sp.csr_array((values, found.indices, found.indptr), shape=counts.shape).toarray()
    np.testing.assert_array_equal(
        X[:, [learned.names().index(word) for word in vectorizer.get_feature_names_out()]], counts.toarray()
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_any_text_has_the_words_of_scikit_learn(texts):
    for ngrams, characters in (((1, 2), False), ((2, 3), True)):
        column = Column("t", "text", ngrams=ngrams, characters=characters, bare=True)
        batch = pa.record_batch({"t": pa.array([text.encode("utf-8", "replace").decode() for text in texts])})
        found = Encoder(Recipe("table", 12, table=Table((column,)))).encode(batch, Place("x", np.arange(len(texts)), 0))
        vectorizer = HashingVectorizer(
            n_features=1 << 12, alternate_sign=False, norm=None, ngram_range=ngrams, analyzer="char" if characters else "word"
        )
        expected = vectorizer.transform(batch.column("t").to_pylist())
        np.testing.assert_array_equal(found.indptr, expected.indptr)
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_array_equal(np.ones(expected.nnz) if found.data is None else found.data, expected.data)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40))
def test_the_hash_is_murmur3(data):
    assert int(kernels.murmur(np.frombuffer(data, np.uint8))) == murmurhash3_32(data, 0, positive=True)


def test_bins_lie_between_quantiles(tmp_path):
    rng = np.random.default_rng(1)
    age = rng.exponential(10, 1000).round(1)
    age[rng.random(1000) < 0.1] = np.nan
    pa.parquet.write_table(pa.table({"y": rng.integers(0, 2, 1000), "age": age}), tmp_path / "a.parquet")
    streamcut.convert(tmp_path / "a.parquet", tmp_path / "a", labels="y", numeric="age:bin4")
    (column,) = streamcut.open(tmp_path / "a").recipe.table.columns
    known = np.sort(age[~np.isnan(age)])
    np.testing.assert_allclose(column.edges, [np.quantile(known, q, method="inverted_cdf") for q in (0.25, 0.5, 0.75)], atol=0.2)
    X, _ = matrix(tmp_path / "a")
    names = streamcut.open(tmp_path / "a").recipe.names
    counts = dict(zip(names, np.asarray(X.sum(axis=0)).ravel(), strict=True))
    assert counts["age is missing"] == np.isnan(age).sum()
    for name, low, high in zip(interval_names(column.edges), (-np.inf, *column.edges), (*column.edges, np.inf), strict=True):
        assert counts[f"age={name}"] == ((age >= low) & (age < high)).sum()
        assert 180 < counts[f"age={name}"] < 280
    assert all(low < high for low, high in pairwise(column.edges))
