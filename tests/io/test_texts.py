"""Texts: which words become features; tables as text in any dialect; lines of Vowpal Wabbit, read or refused by file and line."""

from __future__ import annotations

import json
import os
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kit.stored import content
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import streamcut
from streamcut.errors import BadInputError, UsageError

N = 300
COMMON, RARE = ["alpha", "beta", "gamma", "the", "and"], [f"word{k}" for k in range(200)]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    r = np.random.default_rng(3)
    texts = [" ".join([*r.choice(COMMON, 5), *r.choice(RARE, r.integers(1, 4))]) for _ in range(N)]
    return pd.DataFrame({"text": texts, "city": r.choice(["Rome", "Oslo"], N), "y": r.integers(0, 2, N)})


def rows(path):
    return pd.DataFrame(content(path)[0], columns=list(streamcut.open(path).recipe.names))


@pytest.mark.parametrize("weights", ["counts", "tfidf"])
@pytest.mark.parametrize("ngrams", ["1,1", "1,2"])
def test_rare_words_and_stop_words_are_left_out_as_by_a_vocabulary(frame, tmp_path, weights, ngrams):
    """The same as scikit-learn's with the vocabulary that is left: runs of words go with any word that is left out."""
    how = {"text_weights": weights, "ngrams": ngrams, "min_count": 4, "stop_words": ["the", "AND"]}
    streamcut.convert(frame, tmp_path / "s.zarr", labels="y", text="text", **how)
    least, most = map(int, ngrams.split(","))
    seen = CountVectorizer(ngram_range=(least, most), min_df=4).fit(frame.text).get_feature_names_out()
    kept = [gram for gram in seen if not {"the", "and"} & set(gram.split())]
    assert 0 < len(kept) < len(seen)
    found = rows(tmp_path / "s.zarr")
    assert sorted(found.columns) == sorted([*(f"text={gram}" for gram in kept), "city=Rome", "city=Oslo"])
    if weights == "counts":
        expected = CountVectorizer(ngram_range=(least, most), vocabulary=kept).fit_transform(frame.text)
    else:
        expected = TfidfVectorizer(ngram_range=(least, most), vocabulary=kept, sublinear_tf=True).fit_transform(frame.text)
    np.testing.assert_allclose(found[[f"text={gram}" for gram in kept]].to_numpy(), expected.toarray(), rtol=1e-12)
    assert (found[["city=Rome", "city=Oslo"]].sum(axis=1) == 1).all()


def test_a_file_of_stop_words_and_what_is_refused(frame, tmp_path):
    (tmp_path / "stop.txt").write_text("The\nand\n")
    streamcut.convert(frame, tmp_path / "a.zarr", labels="y", text="text", stop_words=str(tmp_path / "stop.txt"))
    streamcut.convert(frame, tmp_path / "b.zarr", labels="y", text="text", stop_words=["the", "and"])
    assert rows(tmp_path / "a.zarr").equals(rows(tmp_path / "b.zarr"))

    def refused(error, match, **options):
        with pytest.raises(error, match=match):
            streamcut.convert(frame, tmp_path / "c.zarr", labels="y", **{"text": "text", **options})

    refused(streamcut.errors.NotFoundError, "neither english nor a readable file", stop_words="german")
    refused(UsageError, "hashing does not keep", min_count=2, hash_bits=10)
    refused(UsageError, "characters are not words", stop_words="english", ngrams="chars:3")
    refused(UsageError, "for columns of texts", min_count=2, text=(), drop="text")
    refused(BadInputError, "of column 'text' no word that is in 500 rows or more is left", min_count=500)


@pytest.mark.parametrize(("second", "stored"), [("fox den", False), ("fox fox", True)])
def test_words_that_occur_once_need_no_values(tmp_path, second, stored):
    frame = pd.DataFrame({"text": ["red fox", second] * 30, "y": [0, 1] * 30})
    streamcut.convert(frame, tmp_path / "a.zarr", labels="y", text="text", text_weights="counts", on_told=None)
    assert (streamcut.open(tmp_path / "a.zarr").read(0).data is not None) == stored


@pytest.mark.parametrize("ngrams", ["1,2", "chars:1,2"])
def test_bytes_that_are_no_letters_separate_words(tmp_path, ngrams):
    """Parquet holds whatever was written: numbers beyond Unicode, halves of pairs, characters that are cut off."""
    odd = [b"\xf5\x80\x80\x80", b"\xf7\xbf\xbf\xbf", b"\xed\xa0\x80", b"\xc0\x80", b"\xf8\x88\x80\x80\x80", b"\xff", b"\x80"]
    texts = pa.array([*(b"Old " + bad + " caf\u00e9".encode() for bad in odd), b"old caf\xe2\x82", b"ab \xf0\x9f"], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), len(texts), texts.buffers())
    pq.write_table(pa.table({"y": [0, 1] * (len(texts) // 2) + [0], "text": texts}), tmp_path / "t.parquet")
    streamcut.convert(tmp_path / "t.parquet", tmp_path / "t.zarr", labels="y", text="text", ngrams=ngrams)
    names = streamcut.open(tmp_path / "t.zarr").recipe.names
    if ngrams == "1,2":
        assert set(names) == {"old", "café", "old café", "caf", "old caf", "ab"}
    else:
        assert {"o", "ol", "é", "f", "b "} <= set(names)


# --- tables as text: other delimiters, decimals with a comma, types -------------------------------------------------------------


FRAME = pd.DataFrame(
    {
        "size, cm": [1.5, 2.25, -3.0, 0.125] * 30,
        "kind": ["a;b", "c", "a|b", "d,e"] * 30,
        "count": [1, 2, 3, 4] * 30,
        "label": ["yes", "no", "no", "yes"] * 30,
    }
)
OTHERS = [("csv", ";", "."), ("csv", ";", ","), ("csv", "\t", "."), ("csv", "|", "."), ("tsv", "\t", "."), ("tsv", "\t", ",")]


def stored(path, **options):
    told = []
    streamcut.convert(path, path.with_suffix(".zarr"), labels="label", on_told=told.append, **options)
    return streamcut.open(path.with_suffix(".zarr")), told


@pytest.mark.parametrize(("suffix", "delimiter", "decimal"), OTHERS)
def test_it_is_read_as_with_commas(tmp_path, suffix, delimiter, decimal):
    FRAME.to_csv(tmp_path / "usual.csv", index=False)
    FRAME.to_csv(tmp_path / f"other.{suffix}", index=False, sep=delimiter, decimal=decimal)
    usual, nothing = stored(tmp_path / "usual.csv")
    other, told = stored(tmp_path / f"other.{suffix}")
    assert other.manifest.fingerprint == usual.manifest.fingerprint
    assert other.recipe == usual.recipe
    assert not [sentence for sentence in nothing if "separated" in sentence or "decimals" in sentence]
    assert any("separated by" in sentence for sentence in told) == (suffix == "csv")
    assert ("decimals are written with a comma" in told) == (decimal == ",")


def test_a_comma_is_no_decimal_point_among_points(tmp_path):
    rows = "".join(f"{label};1,5;2.5\n" for label in (0, 1) * 60)
    (tmp_path / "a.csv").write_text(f"label;code;number\n{rows}")
    data, told = stored(tmp_path / "a.csv")
    assert {column.name: column.role for column in data.recipe.table.columns} == {"code": "categorical", "number": "numeric"}
    assert "decimals are written with a comma" not in told


def test_a_single_column_and_names_with_quoted_delimiters(tmp_path):
    (tmp_path / "a.csv").write_text('"a;b;c",label\n' + "1,0\n2,1\n" * 60)
    data, _ = stored(tmp_path / "a.csv")
    assert [column.name for column in data.recipe.table.columns] == ["a;b;c"]


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_types_are_guessed_from_whole_rows_however_long_they_are(tmp_path, suffix):
    long = "word " * 300_000  # longer than what is read of other texts
    rows = [(i / 4, i % 2, long) for i in range(4)]
    csv = "".join(f"{number},{label},{text}\n" for number, label, text in rows)
    lines = "".join(json.dumps({"number": number, "label": label, "text": text}) + "\n" for number, label, text in rows)
    (tmp_path / f"a.{suffix}").write_text(f"number,label,text\n{csv}" if suffix == "csv" else lines)
    streamcut.convert(tmp_path / f"a.{suffix}", tmp_path / "a.zarr", labels="label", drop=["text"])
    recipe = streamcut.open(tmp_path / "a.zarr").recipe
    assert [(column.name, column.role) for column in recipe.table.columns] == [("number", "numeric")]


# --- Vowpal Wabbit's text -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("|f a", r"x\.vw:3: no label"),
        ("1|f a", r"x\.vw:3: no label before the bar \(a word that touches it is a tag\)"),
        ("one |f a", r"x\.vw:3: label 'one' is not a number"),
        ("1 2 3 |f a", r"x\.vw:3: '3' is an initial prediction"),
        ("1:0.5:2 |f a", r"x\.vw:3: label '1:0.5:2' is not a number"),
        ("1 1 |f a:b", r"x\.vw:3: value 'b' is not a number"),
        ("1 1 |f a:1:2", r"x\.vw:3: value '1:2' is not a number"),
        ("1 x |f a", r"x\.vw:3: importance 'x' is not a number"),
        ("1 -2 |f a", r"x\.vw:3: importance -2 is negative"),
        ("1 1 |f:x a", r"x\.vw:3: scale of a namespace 'x' is not a number"),
        ("1 1 | :2", r"x\.vw:3: a feature without a name"),
        ("1 1 |f a:inf", r"x\.vw:3: value .inf. is not finite"),
        ("1 1 |f:1e200 a:1e200", r"x\.vw:3: value inf does not fit float32"),
        ("1 1 |f:nan b", r"x\.vw:3: scale of a namespace .nan. is not finite"),
        ("nan |f b", r"x\.vw:3: label .nan. is not finite"),
        ("1 1 |f :2", r"x\.vw:3: a feature without a name"),
        ("1\udcff |f a", r"x\.vw:3: label .1\\udcff. is not a number"),
        ("1 |f a:1e39\n1 |f a:b\nx |f a", r"x\.vw:3: value 1e\+39 does not fit float32; use --dtype float64"),
        ("1 x |f a\n1 |f a:b", r"x\.vw:3: importance .x. is not a number"),
    ],
)
def test_lines_that_are_refused(tmp_path, run, line, reason):
    (tmp_path / "x.vw").write_bytes(os.fsencode(f"1 1 |f a\n\n{line}\n"))
    code, _, said = run("convert", tmp_path / "x.vw", tmp_path / "x.zarr", "-q")
    assert code == 3
    assert re.search(reason, said), said
    assert [path.name for path in tmp_path.iterdir()] == ["x.vw"]


def test_from_text_to_predictions(tmp_path, run):
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 400)
    noise = rng.integers(0, 50, 400)
    text = [f"{2 * k - 1} 1 |f {'x' if k else 'y'}:{1 + v / 50} w{v}" for k, v in zip(kind, noise, strict=True)]
    (tmp_path / "a.vw").write_text("\n".join(text))
    for options in ((), ("--hash-bits", 12)):
        assert run("convert", tmp_path / "a.vw", tmp_path / "a.zarr", *options, "-q", "--force")[0] == 0
        assert run("train", tmp_path / "a.zarr", "--output", tmp_path / "m.npz", "-q", "--force")[0] == 0
        (tmp_path / "b.vw").write_text("\n".join(line.split(" ", 2)[2] + " never_seen" for line in text))
        code, out, said = run("predict", tmp_path / "m.npz", tmp_path / "b.vw")
        assert code == 0
        assert np.mean(np.array(out.split(), float) == 2 * kind - 1) > 0.95
        assert ("features that training did not see: 400" in said) == (not options)
        assert run("predict", tmp_path / "m.npz", tmp_path / "a.zarr")[1] == out or options
    assert run("evaluate", tmp_path / "m.npz", tmp_path / "a.vw")[0] == 0
    assert run("evaluate", tmp_path / "m.npz", tmp_path / "b.vw")[0] == 3
    assert run("convert", tmp_path / "b.vw", tmp_path / "b.zarr", "--label", "none", "--recipe", tmp_path / "m.npz", "-q")[0] == 0
    assert run("predict", tmp_path / "m.npz", tmp_path / "b.zarr")[0] == 0
