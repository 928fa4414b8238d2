"""Every kind of table gives the rows that were put into it, from any row on, and refuses what it cannot hold."""

import warnings
from collections import Counter

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from streamcut.errors import BadInputError, MemoryBudgetError, NotFoundError, StreamcutError, UsageError
from streamcut.io.formats.finding import find_files, sniff
from streamcut.io.sources.canonical import LabelWords, RawRows, RowRules, canonical
from streamcut.io.sources.columns import ColumnFile
from streamcut.io.sources.row_source import BlockSize, TableSource
from streamcut.io.sources.scipy_files import MatrixMarketReader, NpzReader, SideFiles


@pytest.fixture(scope="module")
def table():
    """X (200 × 50, float32), y, qid."""
    rng = np.random.default_rng(5)
    X = sp.random_array((200, 50), density=0.1, format="csr", dtype=np.float32, rng=rng)
    return X, rng.integers(-1, 2, 200).astype(float), np.arange(200) // 9


def collected(source, start=None):
    """(X, y, qid, weight) of all blocks, and the positions."""
    rows, positions = [], []
    for chunk, position in source.blocks(start):
        cut = slice(chunk.indptr[0], chunk.indptr[-1])
        data = np.ones(chunk.nnz) if chunk.data is None else chunk.data[cut]
        X = sp.csr_array((data, chunk.indices[cut], chunk.indptr - chunk.indptr[0]), shape=(chunk.n_rows, 50))
        rows.append((X, chunk.y, chunk.qid, chunk.weight, chunk.first_row))
        positions.append(position)
    if not rows:
        return None, positions
    X = sp.vstack([row[0] for row in rows]).toarray()
    columns = [None if rows[0][k] is None else np.concatenate([row[k] for row in rows]) for k in (1, 2, 3)]
    return (X, *columns, rows[0][4]), positions


def write_column(path, values):
    path.write_text("".join(f"{value}\n" for value in values))
    return ColumnFile(str(path), "labels")


def npz_source(folder, table, rules=None, block=100, **save):
    X, y, qid = table
    sp.save_npz(folder / "x.npz", X, **save)
    np.save(folder / "q.npy", qid)
    side = SideFiles(write_column(folder / "y.txt", y), ColumnFile(str(folder / "q.npy"), "qid"))
    path = str(folder / "x.npz")
    return TableSource([path], [NpzReader(path, side, 0)], rules or RowRules(), BlockSize(block, 10**6))


def anndata_source(path, table, **columns):
    from streamcut.io.sources.anndata_files import AnnDataReader

    return TableSource([str(path)], [AnnDataReader(str(path), "label", "query")], RowRules(**columns), BlockSize(100, 10**6))


def write_anndata(path, X, y, qid):
    anndata = pytest.importorskip("anndata")
    import pandas as pd

    words = pd.Categorical(np.where(y > 0, "spam", "ham"))
    obs = pd.DataFrame({"label": y, "query": qid, "word": words}, index=[f"r{i}" for i in range(len(y))])
    data = anndata.AnnData(X, obs=obs)
    if path.suffix == ".zarr":
        with warnings.catch_warnings(action="ignore"):
            data.write_zarr(path)
    else:
        data.write_h5ad(path)


def write_parquet(path, X, y, qid, **more):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    lists = [pa.array([part.tolist() for part in np.split(a, X.indptr[1:-1])]) for a in (X.indices, X.data.astype(float))]
    pq.write_table(pa.table({"label": y, "indices": lists[0], "values": lists[1], "query": qid}), path, **more)


def parquet_source(path, base=0, **rules):
    from streamcut.io.sources.parquet_files import ParquetReader

    reader = ParquetReader(str(path), "label", "indices", "values", base, "query")
    return TableSource([str(path)], [reader], RowRules(**rules), BlockSize(100, 10**6))


def every_source(folder, table):
    X, y, qid = table
    yield npz_source(folder, table)
    write_anndata(folder / "x.h5ad", X, y, qid)
    yield anndata_source(folder / "x.h5ad", table)
    write_anndata(folder / "x.zarr", X, y, qid)
    yield anndata_source(folder / "x.zarr", table)
    write_anndata(folder / "dense.h5ad", X.toarray(), y, qid)
    yield anndata_source(folder / "dense.h5ad", table)
    write_parquet(folder / "x.parquet", X, y, qid, row_group_size=33)
    yield parquet_source(folder / "x.parquet", dtype="float32")
    scipy.io.mmwrite(folder / "x.mtx", X)
    np.save(folder / "m.npy", qid)
    side = SideFiles(write_column(folder / "m.txt", y), ColumnFile(str(folder / "m.npy"), "qid"))
    reader = MatrixMarketReader(str(folder / "x.mtx"), side, 0)
    yield TableSource([str(folder / "x.mtx")], [reader], RowRules(dtype="float32"), BlockSize(100, 10**6))


def test_every_source_gives_its_rows_from_any_position(tmp_path, table):
    X, y, qid = table
    for source in every_source(tmp_path, table):
        (got, labels, queries, weight, _), positions = collected(source)
        np.testing.assert_allclose(got, X.toarray(), rtol=1e-6, err_msg=source.paths[0])
        np.testing.assert_array_equal(labels, y)
        np.testing.assert_array_equal(queries, qid)
        assert weight is None
        assert len(positions) > 3
        for position in positions[:: len(positions) // 3]:
            rest, _ = collected(source, position)
            done = position["row"]
            np.testing.assert_allclose(rest[0], X.toarray()[done:], rtol=1e-6, err_msg=source.paths[0])
            assert rest[4] == done


def test_uncompressed_npz_and_two_files_in_a_row(tmp_path, table):
    X, y, _ = table
    sp.save_npz(tmp_path / "a.npz", X[:80], compressed=False)
    sp.save_npz(tmp_path / "b.npz", X[80:])
    labels = write_column(tmp_path / "y.txt", y)
    paths = [str(tmp_path / "a.npz"), str(tmp_path / "b.npz")]
    readers = [NpzReader(paths[0], SideFiles(labels), 0), NpzReader(paths[1], SideFiles(labels), 80)]
    (got, seen, _, _, _), _ = collected(TableSource(paths, readers, RowRules(), BlockSize(60, 10**6)))
    np.testing.assert_array_equal(got, X.toarray())
    np.testing.assert_array_equal(seen, y)


def test_categories_become_labels_through_a_map(tmp_path, table):
    from streamcut.io.sources.anndata_files import AnnDataReader

    X, y, qid = table
    write_anndata(tmp_path / "x.h5ad", X, y, qid)
    path = str(tmp_path / "x.h5ad")

    def source(label_map):
        return TableSource([path], [AnnDataReader(path, "word")], RowRules(label_map=label_map), BlockSize(100, 10**6))

    (_, labels, _, _, _), _ = collected(source({"ham": -1.0, "spam": 1.0}))
    np.testing.assert_array_equal(labels, np.where(y > 0, 1, -1))
    with pytest.raises(BadInputError, match=r"label 'spam' is not in label_map"):
        collected(source({"ham": -1.0}))
    learned = source(None)
    (_, labels, _, _, _), _ = collected(learned)
    names = learned.recipe().labels.names
    assert [names[label] for label in labels] == np.where(y > 0, "spam", "ham").tolist()
    with pytest.raises(UsageError, match=r"no column 'nope'.*label"):
        AnnDataReader(path, "nope")


def test_parquet_index_base_and_unequal_lists(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"label": [1], "query": [0], "indices": [[1, 3]], "values": [[1.0, 2.0]]}), path)
    (got, *_), _ = collected(parquet_source(path, base=1))
    assert got.nonzero()[1].tolist() == [0, 2]
    pq.write_table(pa.table({"label": [0], "query": [0], "indices": [[0, 3]], "values": [[1.0]]}), path)
    with pytest.raises(BadInputError, match=r"row 0 .*different lengths"):
        collected(parquet_source(path))
    pq.write_table(pa.table({"label": [0], "query": [0], "indices": [[0]], "values": [[1.0]]}), path)
    with pytest.raises(BadInputError, match="index -1 is negative"):
        collected(parquet_source(path, base=1))


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0.0, 1.0, -2.5, 3.0])), max_size=6), min_size=1, max_size=8
    ),
    rule=st.sampled_from(["error", "sum", "last"]),
    keep=st.booleans(),
)
def test_canonical_form_equals_dictionaries(rows, rule, keep):
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    flat = [entry for row in rows for entry in row]
    raw = RawRows(indptr, np.array([i for i, _ in flat], np.int64), np.array([v for _, v in flat]), np.zeros(len(rows)))
    if rule == "error" and any(len({i for i, _ in row}) < len(row) for row in rows):
        with pytest.raises(BadInputError, match="occurs twice"):
            canonical(raw, RowRules(duplicates=rule), Counter(), "f", 0, 0)
        return
    counters = Counter()
    chunk = canonical(raw, RowRules(duplicates=rule, keep_zeros=keep), counters, "f", 0, 0)
    for i, row in enumerate(rows):
        expected = {}
        for index, value in row:
            expected[index] = expected.get(index, 0.0) + value if rule == "sum" else value
        expected = {k: v for k, v in sorted(expected.items()) if keep or v != 0}
        cut = slice(chunk.indptr[i], chunk.indptr[i + 1])
        assert dict(zip(chunk.indices[cut].tolist(), chunk.data[cut].tolist(), strict=True)) == expected
    assert counters["rows sorted"] == sum([i for i, _ in row] != sorted(i for i, _ in row) for row in rows)


@pytest.mark.parametrize(
    ("values", "labels", "rules", "message"),
    [
        ([np.nan], [0.0], {}, "row 7 .* not finite"),
        ([1e39], [0.0], {"dtype": "float32"}, "does not fit float32; use dtype='float64'"),
        ([1.0], [np.nan], {}, "label is missing or not finite"),
        ([1.0], [0.0], {"n_features": 3}, r"feature 3 \(0-based\) is outside the 3 features"),
        ([1j], [0.0], {}, "not real numbers"),
    ],
)
def test_what_rows_may_not_hold(values, labels, rules, message):
    raw = RawRows(np.array([0, 1]), np.array([3]), np.array(values), np.array(labels))
    with pytest.raises(BadInputError, match=message):
        canonical(raw, RowRules(**rules), Counter(), "f", 7, 7)


def test_underflow_is_counted():
    raw = RawRows(np.array([0, 2]), np.array([1, 2]), np.array([1e-50, 1.0]), np.zeros(1))
    counters = Counter()
    chunk = canonical(raw, RowRules(dtype="float32"), counters, "f", 0, 0)
    assert chunk.nnz == 1
    assert counters["values underflowed to 0"] == 1


def test_column_files_must_have_one_value_a_row(tmp_path):
    column = write_column(tmp_path / "y", [1, 2, 3])
    assert column.read(1, 2).tolist() == [2.0, 3.0]
    assert column.read(0, 1).tolist() == [1.0]
    column.expect_end(3)
    with pytest.raises(BadInputError, match="more values than the 2 rows"):
        column.expect_end(2)
    with pytest.raises(BadInputError, match="3 values, but the matrix has more rows"):
        column.read(0, 4)
    (tmp_path / "gap").write_text("1\n\n2\n")
    with pytest.raises(BadInputError, match=r"gap:2: no value"):
        ColumnFile(str(tmp_path / "gap"), "labels").read(0, 3)
    with pytest.raises(NotFoundError):
        ColumnFile(str(tmp_path / "none"), "labels")


def test_a_row_longer_than_the_memory_allows_is_refused(tmp_path):
    X = sp.csr_array(np.ones((2, 50), np.float32))
    sp.save_npz(tmp_path / "x.npz", X)
    labels = SideFiles(write_column(tmp_path / "y", [0, 1]))
    path = str(tmp_path / "x.npz")
    source = TableSource([path], [NpzReader(path, labels, 0)], RowRules(), BlockSize(20, 40))
    with pytest.raises(MemoryBudgetError, match=r"row 0 .*50 entries.*raise memory"):
        collected(source)


def test_formats_are_told_by_content(tmp_path, table):
    X, y, qid = table
    npz_source(tmp_path, table)
    assert sniff(str(tmp_path / "x.npz")) == "npz"
    write_anndata(tmp_path / "x.h5ad", X, y, qid)
    write_anndata(tmp_path / "x.zarr", X, y, qid)
    write_parquet(tmp_path / "x.parquet", X, y, qid)
    scipy.io.mmwrite(tmp_path / "x.mtx", X)
    (tmp_path / "x.svm").write_text("1 1:1\n")
    (tmp_path / "folder").mkdir()
    for name, kind in {"x.h5ad": "anndata", "x.zarr": "anndata", "x.parquet": "parquet", "x.mtx": "mtx", "x.svm": "svmlight",
                       "folder": "svmlight"}.items():  # fmt: skip
        assert sniff(str(tmp_path / name)) == kind
    (tmp_path / "lie.npz").write_text("1 1:1\n")
    with pytest.raises(BadInputError, match="name says npz, the content does not"):
        sniff(str(tmp_path / "lie.npz"))
    with pytest.raises(NotFoundError, match="no such file"):
        sniff(str(tmp_path / "nothing"))
    with pytest.raises(UsageError, match="different formats"):
        find_files([str(tmp_path / "x.npz"), str(tmp_path / "x.svm")], "auto")


def test_files_that_are_something_else(tmp_path, table):
    import h5py

    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["numbers"] = [1, 2]
    with pytest.raises(NotFoundError, match="neither a streamcut store nor an AnnData"):
        sniff(str(tmp_path / "x.h5"))
    np.savez(tmp_path / "dense.npz", a=np.ones(3))
    with pytest.raises(BadInputError, match=r"not a sparse matrix of scipy\.sparse\.save_npz"):
        NpzReader(str(tmp_path / "dense.npz"), None, 0)
    sp.save_npz(tmp_path / "dia.npz", table[0].todia())
    with pytest.raises(BadInputError, match="saved as dia; save it by rows"):
        NpzReader(str(tmp_path / "dia.npz"), None, 0)


def test_a_truncated_npz_is_refused_at_every_length(tmp_path, table):
    npz_source(tmp_path, table)
    whole = (tmp_path / "x.npz").read_bytes()
    labels = write_column(tmp_path / "y.txt", table[1])
    for length in range(0, len(whole), 97):
        (tmp_path / "cut.npz").write_bytes(whole[:length])
        with pytest.raises(StreamcutError):
            collected(
                TableSource(
                    "npz",
                    [str(tmp_path / "cut.npz")],
                    [NpzReader(str(tmp_path / "cut.npz"), SideFiles(labels), 0)],
                    RowRules(),
                    100,
                )
            )


def test_a_qid_that_comes_back_is_refused_unless_it_will_be_grouped(tmp_path, table):
    X, y, _ = table
    qid = np.arange(200) // 10
    qid[150:] = 3
    source = npz_source(tmp_path, (X, y, qid))
    with pytest.raises(BadInputError, match=r"row 150 .*qid 3 comes back.*group_by_qid=True"):
        collected(source)
    source.grouped = False
    assert collected(source)[0][2].tolist() == qid.tolist()


@pytest.mark.parametrize("labels", [["1", "2", "x1"], ["1", "2", None, "x1"]])
def test_a_word_among_numbers_is_a_mistake(labels):
    words = LabelWords({}, learn=True)
    rules = RowRules(missing_labels="skip")
    canonical(_rows_of(np.array(["3", "4"], dtype=object)), rules, Counter(), "x", 0, 0, words)
    with pytest.raises(BadInputError, match="'x1' is not a number"):
        canonical(_rows_of(np.array(labels, dtype=object)), rules, Counter(), "x", 0, 0, words)


def _rows_of(labels):
    return RawRows(np.zeros(len(labels) + 1, np.int64), np.empty(0, np.int32), np.empty(0), labels)
