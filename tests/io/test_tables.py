"""Tables become the rows that scikit-learn's transformers would make, whatever they are stored as and however they are read."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.rows import store_bytes
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import murmurhash3_32

import streamcut
import streamcut.foundation.files
from streamcut.errors import BadInputError, UsageError
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.formats.registry import FORMATS
from streamcut.io.opening import open_dataset
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.recipe.table import Column, Table
from streamcut.io.tables import word_kernels
from streamcut.io.tables.encoder import Encoder, Place, interval_names
from streamcut.io.tables.opening import OpenedTables

N = 700


@pytest.fixture(scope="module")
def frame() -> pa.Table:
    """Categories as text, codes, numbers and booleans; numbers with zeros; times; missing values everywhere; labels."""
    rng = np.random.default_rng(7)

    def holes(values, share=0.05):
        return [None if hole else value for value, hole in zip(values, rng.random(N) < share, strict=True)]

    words = ["red", "green", "blue", "größer", "a,b", 'say "x"', "two\nlines"]
    return pa.table(
        {
            "click": pa.array(rng.integers(0, 2, N)),
            "site": pa.array(holes(rng.choice(words, N).tolist())),
            "app": pa.array(holes(rng.integers(0, 300, N).tolist()), pa.int32()),
            "flag": pa.array(holes((rng.random(N) < 0.5).tolist())),
            "price": pa.array(holes((rng.integers(-3, 9, N) / 4).tolist())),
            "age": pa.array(holes(rng.integers(0, 90, N).tolist()), pa.int64()),
            "when": pa.array(
                holes((np.datetime64("2024-01-30T22:15:00") + rng.integers(0, 10**7, N)).tolist()), pa.timestamp("s")
            ),
        }
    )


def write(frame: pa.Table, path: Path) -> Path:
    """`frame` in the format that the name says."""
    match path.suffixes[0]:
        case ".parquet":
            pa.parquet.write_table(frame, path, row_group_size=200)
        case ".arrow":
            with pa.ipc.new_file(path, frame.schema) as file:
                file.write_table(frame, max_chunksize=150)
        case ".csv" | ".tsv":
            options = pa.csv.WriteOptions(delimiter="\t" if path.suffixes[0] == ".tsv" else ",")
            pa.csv.write_csv(frame, path, options)
            if path.suffix == ".gz":
                path.write_bytes(gzip.compress(path.read_bytes()))
        case ".jsonl":
            lines = [json.dumps({k: v for k, v in row.items() if v is not None}, default=str) for row in frame.to_pylist()]
            path.write_text("\n".join(lines) + "\n")
    return path


def matrix(path: Path) -> tuple[sp.csr_array, np.ndarray]:
    """(X, y) of a store."""
    data = open_dataset(path)
    parts, labels = [], []
    for shard in range(len(data.manifest.shards)):
        chunk = data.read(shard)
        values = np.ones(chunk.nnz) if chunk.data is None else chunk.data.astype(np.float64)
        shape = (chunk.n_rows, data.manifest.statistics.n_features)
        parts.append(sp.csr_array((values, chunk.indices.copy(), chunk.indptr - chunk.indptr[0]), shape=shape))
        labels.append(chunk.y.copy())
    return sp.vstack(parts, format="csr"), np.concatenate(labels)


def keys(row: dict, *, crosses=(), numeric=("price", "age"), categorical=("site", "app", "flag"), own=True) -> dict:
    """What FeatureHasher and DictVectorizer are to make of a row."""
    words = {name: str(row[name]).lower() if name == "flag" else str(row[name]) for name in categorical}
    found: dict = {}
    for name in numeric:
        if row[name] is not None:
            found[name] = row[name]
    found |= {name: words[name] for name in categorical if row[name] is not None}
    for cross in crosses:
        if all(row[name] is not None for name in cross):
            found["*".join(cross)] = "*".join(words[name] for name in cross)
    if own:
        found |= {f"{name} is missing": 1 for name in (*numeric, *categorical) if row[name] is None}
    return found


OPTIONS = {"labels": "click", "cross": ["site*app", "site*app*flag"], "drop": "when", "categorical": "app"}
PLAIN = {**OPTIONS, "standardise": False}
CROSSES = (("site", "app"), ("site", "app", "flag"))


@pytest.mark.parametrize("missing", ["own", "zero"])
@pytest.mark.parametrize("bits", [6, 20])
def test_hashed_columns_are_those_of_feature_hasher(frame, tmp_path, bits, missing):
    streamcut.convert(write(frame, tmp_path / "a.parquet"), tmp_path / "a", hash_bits=bits, missing=missing, **PLAIN)
    X, y = matrix(tmp_path / "a")
    rows = [keys(row, crosses=CROSSES, own=missing == "own") for row in frame.to_pylist()]
    expected = FeatureHasher(1 << bits, alternate_sign=False).transform(rows)
    np.testing.assert_array_equal(X.indptr, expected.indptr)
    np.testing.assert_array_equal(X.indices, expected.indices)
    np.testing.assert_array_equal(X.data, expected.data)
    np.testing.assert_array_equal(y, frame["click"].to_numpy())


def test_dictionaries_are_those_of_dict_vectorizer_up_to_order(frame, tmp_path):
    streamcut.convert(write(frame, tmp_path / "a.parquet"), tmp_path / "a", **PLAIN)
    X, _ = matrix(tmp_path / "a")
    names = open_dataset(tmp_path / "a").recipe.names
    vectorizer = DictVectorizer()
    expected = vectorizer.fit_transform([keys(row, crosses=CROSSES) for row in frame.to_pylist()])
    theirs = [name.removesuffix("=1") if "is missing" in name else name for name in vectorizer.get_feature_names_out()]
    assert sorted(names) == sorted(theirs)
    np.testing.assert_array_equal(X[:, [names.index(name) for name in theirs]].toarray(), expected.toarray())
    assert names[:2] == ("price", "age")
    seen = [names[k] for k in dict.fromkeys(X.indices.tolist())]  # categories in the order of the rows
    assert [name for name in seen if name not in names[:2]] == sorted(seen, key=names.index)[2:] or len(set(seen)) == len(names)


@pytest.mark.parametrize("name", ["a.arrow", "a.csv", "a.tsv", "a.csv.gz", "a.jsonl"])
@pytest.mark.parametrize("bits", [None, 16])
def test_every_format_gives_the_same_rows(frame, tmp_path, name, bits):
    options = {**OPTIONS, "drop": (), "time": ["when:hour,weekday,month,year"], "hash_bits": bits}
    streamcut.convert(write(frame, tmp_path / "a.parquet"), tmp_path / "p", **options)
    streamcut.convert(write(frame, tmp_path / name), tmp_path / "o", **options)
    first, second = (open_dataset(tmp_path / path) for path in ("p", "o"))
    assert first.manifest.fingerprint == second.manifest.fingerprint
    assert first.recipe == second.recipe


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
        rows = OpenedTables([FORMATS["csv"].table(path)], options).rows(block // 8, block, threads, grouped=True)
        chunks = [chunk for chunk, _ in rows.blocks()]
        columns = [np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("indices", "y")]
        values = np.concatenate([np.ones(chunk.nnz) if chunk.data is None else chunk.data for chunk in chunks])
        found.append([*columns, values, np.concatenate([np.diff(chunk.indptr) for chunk in chunks]), rows.recipe()])
        assert [chunk.first_row for chunk in chunks] == np.cumsum([0, *(chunk.n_rows for chunk in chunks)])[:-1].tolist()
    assert len(chunks) > 3
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            assert mine == theirs if isinstance(mine, Recipe) else (mine == theirs).all()


def test_rows_of_nothing_but_tabs_and_marks_are_rows_wherever_blocks_begin(tmp_path):
    rows = b"1\ta\n" + 3 * b"\t\n" + b"0\tb\n\n\xef\xbb\xbfx\tb\n"
    (tmp_path / "a.tsv").write_bytes(b"z\tsite\n" + rows)
    options = ConvertOptions(labels="none", categorical="z,site")
    for block in (1, 1000):
        reading = OpenedTables([FORMATS["tsv"].table(str(tmp_path / "a.tsv"))], options).rows(block, 1 << 16, 1, grouped=True)
        assert sum(chunk.n_rows for chunk, _ in reading.blocks()) == 6
        assert {"z=1", "z=0", "z=\ufeffx", "site is missing"} <= set(reading.recipe().names)


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
    assert int(word_kernels.murmur(np.frombuffer(data, np.uint8))) == murmurhash3_32(data, 0, positive=True)


def test_bins_lie_between_quantiles(tmp_path):
    rng = np.random.default_rng(1)
    age = rng.exponential(10, 1000).round(1)
    age[rng.random(1000) < 0.1] = np.nan
    pa.parquet.write_table(pa.table({"y": rng.integers(0, 2, 1000), "age": age}), tmp_path / "a.parquet")
    streamcut.convert(tmp_path / "a.parquet", tmp_path / "a", labels="y", numeric="age:bin4")
    (column,) = open_dataset(tmp_path / "a").recipe.table.columns
    known = np.sort(age[~np.isnan(age)])
    np.testing.assert_allclose(column.edges, [np.quantile(known, q, method="inverted_cdf") for q in (0.25, 0.5, 0.75)], atol=0.2)
    X, _ = matrix(tmp_path / "a")
    names = open_dataset(tmp_path / "a").recipe.names
    counts = dict(zip(names, np.asarray(X.sum(axis=0)).ravel(), strict=True))
    assert counts["age is missing"] == np.isnan(age).sum()
    for name, low, high in zip(interval_names(column.edges), (-np.inf, *column.edges), (*column.edges, np.inf), strict=True):
        assert counts[f"age={name}"] == ((age >= low) & (age < high)).sum()
        assert 180 < counts[f"age={name}"] < 280
    assert all(low < high for low, high in pairwise(column.edges))


def test_parts_of_times(tmp_path):
    frame = pa.table(
        {"y": [1, 0, 1], "when": pa.array(["2024-02-29 23:05:00", None, "1999-12-31 00:00:00"]).cast(pa.timestamp("us"))}
    )
    options = {"labels": "y", "time": ["when:year,quarter,month,week,day,weekday,hour,minute"]}
    streamcut.convert(write(frame, tmp_path / "a.parquet"), tmp_path / "a", **options)
    names = open_dataset(tmp_path / "a").recipe.names
    parts = ["year=2024", "quarter=1", "month=feb", "week=9", "day=29", "weekday=thu", "hour=23", "minute=5"]
    assert names[:8] == tuple(f"when.{part}" for part in parts)
    assert names[8] == "when is missing"
    assert "when.weekday=fri" in names


def test_labels_that_are_words_comparisons_or_missing(frame, tmp_path):
    path = write(frame, tmp_path / "a.parquet")
    streamcut.convert(path, tmp_path / "w", labels="site", categorical="app", drop="*", missing_labels="skip")
    recipe, statistics = open_dataset(tmp_path / "w").recipe, open_dataset(tmp_path / "w").manifest.statistics
    sites = [site for site in frame["site"].to_pylist() if site is not None]
    assert [word for word, _ in recipe.labels.words] == list(dict.fromkeys(sites))
    assert statistics.labels == {number: sites.count(word) for word, number in recipe.labels.words}
    assert open_dataset(tmp_path / "w").manifest.source["counters"]["rows without label left out"] == N - len(sites)
    streamcut.convert(path, tmp_path / "c", labels="price>=0.5", categorical="app", drop="*", missing_labels="skip")
    prices = [price for price in frame["price"].to_pylist() if price is not None]
    late = sum(price >= 0.5 for price in prices)
    assert open_dataset(tmp_path / "c").manifest.statistics.labels == {-1.0: len(prices) - late, 1.0: late}
    assert open_dataset(tmp_path / "c").recipe.labels.names == {-1.0: "price<0.5", 1.0: "price>=0.5"}
    streamcut.convert(path, tmp_path / "n", labels="none", categorical="app", drop="*")
    assert open_dataset(tmp_path / "n").manifest.statistics.labels == {0.0: N}
    with pytest.raises(BadInputError, match=r"a\.parquet: row \d+ \(0-based\), column 'site': the label is missing; missing_l"):
        streamcut.convert(path, tmp_path / "x", labels="site", categorical="app", drop="*")
    streamcut.convert(
        path, tmp_path / "m", labels="flag", label_map="true=5,false=-5", drop="*", numeric="age", missing_labels="skip"
    )
    assert set(open_dataset(tmp_path / "m").manifest.statistics.labels) == {-5.0, 5.0}
    assert not (tmp_path / "x").exists()


def test_test_data_are_prepared_by_the_recipe_of_the_training_data(frame, tmp_path):
    first, second = frame.slice(0, 400), frame.slice(400)
    streamcut.convert(write(first, tmp_path / "a.parquet"), tmp_path / "a", **PLAIN)
    streamcut.convert(write(second, tmp_path / "b.parquet"), tmp_path / "b", recipe=tmp_path / "a")
    streamcut.convert(tmp_path / "b.parquet", tmp_path / "c", **PLAIN)
    known = open_dataset(tmp_path / "a").recipe
    assert open_dataset(tmp_path / "b").recipe == known
    X, y = matrix(tmp_path / "b")
    rows = [keys(row, crosses=CROSSES) for row in second.to_pylist()]
    expected = np.zeros((len(rows), len(known.names)))
    unseen = 0
    for i, row in enumerate(rows):
        for name, value in row.items():
            key = f"{name}={value}" if isinstance(value, str) else name
            if key in known.names:
                expected[i, known.names.index(key)] = value if not isinstance(value, str) else 1.0
            elif name == "site*app*flag":
                unseen += 1
    np.testing.assert_array_equal(X.toarray(), expected)
    np.testing.assert_array_equal(y, second["click"].to_numpy())
    counters = open_dataset(tmp_path / "b").manifest.source["counters"]
    assert sum(count for name, count in counters.items() if "training did not see" in name) >= unseen > 0
    model = streamcut.train(str(tmp_path / "a"))
    streamcut.save_model(model, tmp_path / "m.npz")
    streamcut.convert(tmp_path / "b.parquet", tmp_path / "d", recipe=tmp_path / "m.npz")
    assert open_dataset(tmp_path / "d").manifest.fingerprint == open_dataset(tmp_path / "b").manifest.fingerprint
    assert streamcut.predict(model, str(tmp_path / "b")).shape == (300,)
    with pytest.raises(BadInputError, match=r"prepared by another recipe .* the categories were numbered anew; .*recipe"):
        streamcut.predict(model, str(tmp_path / "c"))
    with pytest.raises(UsageError, match="cross: the recipe sets it already"):
        streamcut.convert(tmp_path / "b.parquet", tmp_path / "e", recipe=tmp_path / "a", cross="site*app")


@pytest.mark.parametrize("bits", [None, 8])
def test_a_conversion_that_was_interrupted_ends_with_the_same_bytes(frame, tmp_path, monkeypatch, bits):
    path = write(frame, tmp_path / "a.parquet")
    options = {**OPTIONS, "hash_bits": bits, "shard_nnz": 500}
    streamcut.convert(path, tmp_path / "whole", **options)
    monkeypatch.setattr("streamcut.io.tables.opening._BLOCKS", 1 / 64)
    monkeypatch.setenv("STREAMCUT_FAILPOINT", "convert.journal:13:EIO")
    streamcut.foundation.files._hits.clear()
    with pytest.raises(OSError, match="Input/output"):
        streamcut.convert(path, tmp_path / "a", **options)
    monkeypatch.undo()
    report = streamcut.convert(path, tmp_path / "a", resume=True, **options)
    assert report.resumed_rows > 0
    assert (report.rows == N) == (bits is None)  # a dictionary is built again from the first row on
    assert store_bytes(tmp_path / "a") == store_bytes(tmp_path / "whole")


def test_a_dry_run_shows_the_first_rows_and_writes_nothing(tmp_path, run):
    (tmp_path / "a.csv").write_text("late,site,miles\nyes,LAS,10\nno,JFK,2.5\nno,LAS,\n" + "no,LAS,1\n" * 9)
    given = ["convert", tmp_path / "a.csv", tmp_path / "a.zarr", "--labels", "late", "--dry-run", "--no-standardise"]
    code, out, _ = run(*given)
    assert code == 0
    lines = out.splitlines()
    assert "  site   categorical (text)" in lines
    assert lines[-5:-2] == ["yes | miles: 10 | site=LAS", "no | miles: 2.5 | site=JFK", "no | site=LAS | miles is missing"]
    found = json.loads(run(*given, "--json")[1])
    assert found["rows"][1] == {"label": "no", "features": {"miles": 2.5, "site=JFK": 1.0}}
    assert found["recipe"]["labels"]["column"] == "late"
    (tmp_path / "r.svm").write_text("+1 1:0.5 3:2\n-1 2:1\n")
    code, out, _ = run("convert", tmp_path / "r.svm", tmp_path / "r.zarr", "--dry-run")
    assert (code, out) == (0, "1 | 0: 0.5 | 2: 2\n-1 | 1\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "r.svm"]


def test_dictionaries_are_those_of_one_hot_encoder_up_to_order(frame, tmp_path):
    known = frame.select(["click", "site", "app"]).drop_null()
    streamcut.convert(known, tmp_path / "o.zarr", labels="click", categorical="site,app")
    X, _ = matrix(tmp_path / "o.zarr")
    encoder = OneHotEncoder()
    theirs = encoder.fit_transform(known.select(["site", "app"]).to_pandas())
    names = [f"{name}={value}" for name, values in zip(("site", "app"), encoder.categories_, strict=True) for value in values]
    order = [open_dataset(tmp_path / "o.zarr").recipe.names.index(name) for name in names]
    assert X.shape == theirs.shape
    assert (X[:, order] != theirs).nnz == 0


def test_frames_whose_times_are_texts_are_prepared_as_csv_is(tmp_path, run):
    lines = [
        f"{'yes' if i % 3 else 'no'},2024-0{i % 9 + 1}-1{i % 7} {i % 24:02d}:15:00,2024-01-{i % 20 + 1:02d}" for i in range(60)
    ]
    (tmp_path / "a.csv").write_text("back,placed,day\n" + "\n".join([*lines, "no,,"]) + "\n")
    code, _, said = run("convert", tmp_path / "a.csv", tmp_path / "c.zarr", "--labels", "back")
    assert code == 0
    assert "placed  time: month, weekday, hour" in said
    assert "day     time: month, weekday\n" in said
    assert "labels no: 21, yes: 40" in said
    streamcut.convert(pd.read_csv(tmp_path / "a.csv"), tmp_path / "p.zarr", labels="back")
    assert len({open_dataset(tmp_path / name).manifest.fingerprint for name in ("c.zarr", "p.zarr")}) == 1
