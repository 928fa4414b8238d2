"""Labels of tables, the recipes of tables, and what a dry run shows."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kit.stored import content

import streamcut
from streamcut.errors import BadInputError, MemoryBudgetError, UsageError

N = 700


@pytest.fixture(scope="module")
def frame() -> pa.Table:
    """Categories as text, codes and booleans; numbers with zeros; missing values; labels."""
    rng = np.random.default_rng(7)

    def holes(values: list) -> list:
        return [None if hole else value for value, hole in zip(values, rng.random(N) < 0.05, strict=True)]

    columns = {
        "site": rng.choice(["red", "größer", "a,b", 'say "x"'], N),
        "app": rng.integers(0, 300, N),
        "flag": rng.random(N) < 0.5,
    }
    columns |= {"price": rng.integers(-3, 9, N) / 4, "age": rng.integers(0, 90, N)}
    return pa.table({"click": rng.integers(0, 2, N), **{name: holes(values.tolist()) for name, values in columns.items()}})


def test_wide_columns_of_parquet_count_among_narrow_ones(tmp_path):
    """The least memory is that of the columns that are read, not of as many average ones."""
    n, random, least = 1 << 17, np.random.default_rng(0), []
    wide = {f"w{k}": random.standard_normal(n) for k in range(60)}
    narrow = {f"n{k}": np.zeros(n) for k in range(240)}
    pq.write_table(pa.table({"y": random.integers(0, 2, n), **wide, **narrow}), tmp_path / "t.parquet")
    for names in (wide, [*narrow][:60]):
        how = {"numeric": [*names], "drop": [*({**wide, **narrow}.keys() - {*names})], "standardise": False}
        with pytest.raises(MemoryBudgetError) as refused:
            streamcut.convert(tmp_path / "t.parquet", tmp_path / "t.zarr", labels="y", memory="1MB", **how)
        number, unit = re.search(r"at least ([\d.]+) ([MG])B", str(refused.value)).groups()
        least.append(float(number) * (1000 if unit == "G" else 1))
    assert least[0] > least[1] + 40, least


PLAIN = {"labels": "click", "cross": ["site*app", "site*app*flag"], "categorical": "app", "standardise": False}


def test_labels_that_are_words_missing_or_mapped(frame, tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(frame, path)
    streamcut.convert(path, tmp_path / "w", labels="site", categorical="app", drop="*", missing_labels="skip")
    recipe, statistics = streamcut.open(tmp_path / "w").recipe, streamcut.open(tmp_path / "w").manifest.statistics
    sites = [site for site in frame["site"].to_pylist() if site is not None]
    assert [word for word, _ in recipe.labels.words] == list(dict.fromkeys(sites))
    assert statistics.labels == {number: sites.count(word) for word, number in recipe.labels.words}
    assert streamcut.open(tmp_path / "w").manifest.source["counters"]["rows without label left out"] == N - len(sites)
    streamcut.convert(path, tmp_path / "n", labels="none", categorical="app", drop="*")
    assert streamcut.open(tmp_path / "n").manifest.statistics.labels == {0.0: N}
    with pytest.raises(BadInputError, match=r"a\.parquet: row \d+ \(0-based\), column 'site': the label is missing; missing_l"):
        streamcut.convert(path, tmp_path / "x", labels="site", categorical="app", drop="*")
    streamcut.convert(
        path, tmp_path / "m", labels="flag", label_map="true=5,false=-5", drop="*", numeric="age", missing_labels="skip"
    )
    assert set(streamcut.open(tmp_path / "m").manifest.statistics.labels) == {-5.0, 5.0}
    assert not (tmp_path / "x").exists()


def test_test_data_are_prepared_by_the_recipe_of_the_training_data(frame, tmp_path):
    first, second = frame.slice(0, 400), frame.slice(400)
    streamcut.convert(first, tmp_path / "a", **PLAIN)
    streamcut.convert(second, tmp_path / "b", recipe=tmp_path / "a")
    streamcut.convert(second, tmp_path / "c", **PLAIN)
    assert streamcut.open(tmp_path / "b").recipe == streamcut.open(tmp_path / "a").recipe
    np.testing.assert_array_equal(content(tmp_path / "b")[1], second["click"].to_numpy())
    unseen = streamcut.open(tmp_path / "b").manifest.source["counters"]
    assert sum(count for name, count in unseen.items() if "training did not see" in name) > 0
    model = streamcut.train(str(tmp_path / "a"))
    streamcut.save_model(model, tmp_path / "m.npz")
    streamcut.convert(second, tmp_path / "d", recipe=tmp_path / "m.npz")
    assert streamcut.open(tmp_path / "d").manifest.fingerprint == streamcut.open(tmp_path / "b").manifest.fingerprint
    assert streamcut.predict(model, str(tmp_path / "b")).shape == (300,)
    with pytest.raises(BadInputError, match=r"prepared by another recipe .* the categories were numbered anew; .*recipe"):
        streamcut.predict(model, str(tmp_path / "c"))
    with pytest.raises(UsageError, match="cross: the recipe sets it already"):
        streamcut.convert(second, tmp_path / "e", recipe=tmp_path / "a", cross="site*app")


def test_a_dry_run_shows_the_first_rows_and_writes_nothing(tmp_path, run):
    (tmp_path / "a.csv").write_text("late,site,miles\nyes,LAS,10\nno,JFK,2.5\nno,LAS,\n" + "no,LAS,1\n" * 9)
    given = ["convert", tmp_path / "a.csv", tmp_path / "a.zarr", "--label", "late", "--dry-run", "--no-standardise"]
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


@pytest.mark.parametrize(("missing", "unseen"), [("own", 10), ("zero", 6)])
def test_words_have_their_features_in_every_type_of_text(missing, unseen):
    """Known, unknown, empty and missing ones, some spelled like a part of another column's key."""
    rng = np.random.default_rng(0)
    words = pa.array(rng.choice(["a", "b=c", "ü", "=", "none"], 200))
    rows = pa.table({"c": words, "c=b": words.take(rng.permutation(200)), "x": rng.random(200)})
    how = {"missing": missing, "standardise": False}
    model = streamcut.train(rows.append_column("y", pa.array(rng.integers(0, 2, 200))), label="y", convert=how)
    new = pa.array([*words.to_pylist()[:90], "new", "c", "", None, "b", "=b", "A", "a ", "", None])
    new = pa.table({"c": new, "c=b": new, "x": np.ones(100)})
    answers = []
    for dtype in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        schema = pa.schema([("c", dtype), ("c=b", dtype), ("x", pa.float64())])
        with pytest.warns(UserWarning, match=f"values of c that training did not see: {unseen}; values of c=b that"):
            answers.append(streamcut.predict(model, new.cast(schema), answer="scores"))
    with pytest.warns(UserWarning, match="did not see"):
        one_by_one = [streamcut.predict(model, row, answer="scores")[0] for row in new.to_pylist()]
    for scores in answers:
        np.testing.assert_array_equal(scores, one_by_one)
