"""Vowpal Wabbit's text is read as VW reads it, its hashes are scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction import FeatureHasher

import streamcut
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.text.vw import VwSource

LINES = [
    "1 |f a b:2 c",
    "-1 2.5 'first|f a:0.5 |g:3 x y:-1",
    "1 0.5 tag|f a a b",
    "-1 | plain:1e-3 words häßlich",
    "1 1 |f a |f b |h:0.1 z:10",
    "\t-1 1  | spaced   out\t ",
    "1 1 |",
    "-1 1",
    "1 1 |f|g x",
    "-1 1 |site a=b,c *x:.5 1234:2 ^",
]


def read(folder, lines, **options):
    """(rows as {key: value}, labels, weights) of text with these lines, by a dictionary."""
    (folder / "x.vw").write_text("\n".join(lines) + "\n")
    source = VwSource([str(folder / "x.vw")], ConvertOptions(dtype="float64", **options), block_bytes=64)
    rows, labels, weights = [], [], []
    for chunk, _ in source.blocks():
        for row in range(chunk.n_rows):
            cut = slice(chunk.indptr[row], chunk.indptr[row + 1])
            rows.append(dict(zip(chunk.indices[cut].tolist(), chunk.data[cut].tolist(), strict=True)))
        labels += chunk.y.tolist()
        weights += [] if chunk.weight is None else chunk.weight.tolist()
    names = source.recipe().names
    return [{names[j] if names else j: value for j, value in row.items()} for row in rows], labels, weights


def by_wabbit(engine, line):
    """({index: value}, label, importance) of a line, the constant left out; equal features add up."""
    example = engine.example(line)
    found: dict[int, float] = {}
    for space in range(example.num_namespaces()):
        if example.namespace(space) == 128:
            continue
        for i in range(example.num_features_in(space)):
            index = example.feature(space, i)
            found[index] = found.get(index, 0.0) + example.feature_weight(space, i)
    kept = {index: value for index, value in found.items() if value}
    return kept, example.get_simplelabel_label(), example.get_simplelabel_weight()


def index_by_wabbit(engine, key):
    space, caret, feature = key.partition("^")
    space, feature = (space, feature) if caret else (" ", key)
    return engine.hash_feature(feature, engine.hash_space(space)) & ((1 << 24) - 1)


def test_rows_are_those_of_vowpal_wabbit(tmp_path):
    pyvw = pytest.importorskip("vowpalwabbit.pyvw")
    engine = pyvw.Workspace("--quiet -b 24 --noop")
    mask = (1 << 24) - 1
    usual = [line for line in LINES if "^" not in line]
    rows, labels, weights = read(tmp_path, ["1 1 | first", *usual])
    for line, row, label, weight in zip(usual, rows[1:], labels[1:], weights[1:], strict=True):
        theirs, y, importance = by_wabbit(engine, line)
        ours = {index_by_wabbit(engine, key): value for key, value in row.items()}
        assert {index & mask for index in theirs} == set(ours), line
        for index, value in theirs.items():
            assert ours[index & mask] == pytest.approx(value, rel=1e-6), line
        assert (label, weight) == (y, pytest.approx(importance)), line
    engine.finish()


def test_hashed_features_are_those_of_feature_hasher(tmp_path):
    rows, _, _ = read(tmp_path, LINES[1:])
    (tmp_path / "x.vw").write_text("\n".join(LINES[1:]) + "\n")
    streamcut.convert(tmp_path / "x.vw", tmp_path / "h.zarr", hash_bits=10, dtype="float64")
    chunk = streamcut.open(tmp_path / "h.zarr").read(0)
    theirs = FeatureHasher(1 << 10, alternate_sign=False).transform(rows)
    theirs.sum_duplicates()
    np.testing.assert_array_equal(chunk.indices, theirs.indices)
    np.testing.assert_array_equal(chunk.data, theirs.data)
