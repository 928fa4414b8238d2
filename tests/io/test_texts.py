"""Which words of texts become features, and which columns are taken for texts."""

from __future__ import annotations

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


@pytest.mark.parametrize("count", [2, 40, 3000])
def test_long_texts_are_texts_however_few_were_sampled(tmp_path, count):
    r = np.random.default_rng(1)
    long = [" ".join(r.choice(RARE, 60)) for _ in range(count)]
    frame = pd.DataFrame({
        "note": long,
        "short": [" ".join(r.choice(RARE, 4)) for _ in range(count)],
        "site": np.resize(["New York City", "San Francisco Bay"], count),
        "y": np.resize([0, 1], count),
    })  # fmt: skip
    frame.to_csv(tmp_path / "t.csv", index=False)
    streamcut.convert(tmp_path / "t.csv", tmp_path / "t.zarr", labels="y")
    roles = {column.name: column.role for column in streamcut.open(tmp_path / "t.zarr").recipe.table.columns}
    assert roles["note"] == roles["short"] == "text"
    assert roles["site"] == ("text" if count == 2 else "categorical")
    found = rows(tmp_path / "t.zarr")
    assert len([name for name in found.columns if name.startswith("note=word")]) == min(200, len({*" ".join(long).split()}))


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
