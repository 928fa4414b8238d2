"""A value has one type and one spelling, whatever container it comes in; what has none is missing, and is said."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import streamcut
from streamcut.errors import BadInputError, UsageError

LABELS = {
    "booleans": pa.array([True, False] * 20),
    "texts of pandas": pa.array(["True", "False"] * 20),
    "texts": pa.array(["true", "FALSE"] * 20),
    "categories": pa.array(["TRUE", "false"] * 20).dictionary_encode(),
    "numbers as text": pa.array(["1", "0"] * 20),
    "numbers as text, of pandas": pa.array(["1.0", "0"] * 20),
    "whole numbers": pa.array([1, 0] * 20, pa.uint8()),
    "decimals": pa.array([Decimal("1.0"), Decimal("0.0")] * 20),
}


@pytest.mark.parametrize("kind", LABELS)
def test_a_label_is_one_label(tmp_path, kind):
    streamcut.convert(pa.table({"y": LABELS[kind], "x": np.arange(40.0)}), tmp_path / "o.zarr", labels="y", numeric="x")
    found = streamcut.open(tmp_path / "o.zarr")
    assert found.recipe.labels.words == ()
    np.testing.assert_array_equal(found.read(0).y, [1, 0] * 20)


def stored(frame: Any, folder: Path, **options: Any) -> Any:
    streamcut.convert(frame, folder / "o.zarr", labels="y", force=True, **options)
    return streamcut.open(folder / "o.zarr")


def test_decimals_are_rounded_as_their_digits(tmp_path):
    texts = ["0.1", "123456789012345678.9", "-9007199254740993.1", "0.30000000000000004", "1e-7", "99999999999999999999", "2.675"]
    for width, scale, kept in (
        (pa.decimal128, 18, texts[:1] + texts[3:5]),
        (pa.decimal128, 3, texts[1:3] + texts[6:]),
        (pa.decimal256, 30, texts),
    ):
        column = pa.array([Decimal(text) for text in kept], width(38 if width is pa.decimal128 else 60, scale))
        found = stored(
            pa.table({"y": [0, 1] * 10, "x": pa.concat_arrays([column] * 20)[:20]}), tmp_path, numeric="x", standardise=False
        ).read(0)
        assert found.data.tolist() == [float(text) for text in kept * 20][:20]
    small = pa.array([Decimal("1.25"), None] * 10, pa.decimal64(5, 2)).slice(1)
    found = stored(pa.table({"y": [0, 1] * 9 + [0], "x": small}), tmp_path, numeric="x", standardise=False).read(0)
    assert found.data.max() == 1.25


def test_types_that_every_value_has(tmp_path):
    rows = [
        ("TRUE", "-0", "0.50", "2024-01-01", "007"),
        ("", "3.0", "5e-1", "2024-01-01T02:00:00.500+02:00", "7"),
        ("false", "NA", "7", "", ""),
    ]
    names = "flag", "count", "size", "day", "site"
    frame = pa.table({"y": [0, 1, 0], **{name: [row[i] for row in rows] for i, name in enumerate(names)}})
    found = stored(frame, tmp_path, categorical=",".join(names))
    assert [column.type for column in found.recipe.table.columns] == ["boolean", "integer", "number", "time", "text"]
    assert set(found.recipe.names) == {
        *("flag=true", "flag=false", "flag is missing", "count=0", "count=3", "count is missing", "size=0.5", "size=7"),
        *("day=2024-01-01T00:00:00Z", "day=2024-01-01T00:00:00.5Z", "day is missing", "site=007", "site=7", "site is missing"),
    }


def test_bytes_are_spelled_in_hexadecimal(tmp_path):
    for kind in (pa.binary(), pa.large_binary(), pa.binary(2), pa.binary_view()):
        found = stored(pa.table({"y": [0, 1, 0], "x": pa.array([b"ab", b"\xff\x00", None], kind)}), tmp_path)
        assert found.recipe.names == ("x=6162", "x=ff00", "x is missing")
        assert found.recipe.table.columns[0].type == "bytes"


TIMES = {
    "of databases": pa.array([2**63 - 1, -(2**63) + 1, 0, None], pa.int64()).view(pa.timestamp("us")),
    "ms": pa.array([2**63 - 1, -(2**63) + 1, 0, None], pa.int64()).view(pa.timestamp("ms")),
    "s": pa.array([2**40, -(2**40), 0, None], pa.int64()).view(pa.timestamp("s")),
    "ns": pa.array([2**63 - 1, -(2**63) + 1, 0, None], pa.int64()).view(pa.timestamp("ns")),
    "with a zone": pa.array([2**63 - 1, -(2**63) + 1, 0, None], pa.int64()).view(pa.timestamp("us", "Asia/Tokyo")),
    "dates": pa.array([2**31 - 1, -(2**31), 0, None], pa.int32()).view(pa.date32()),
    "texts": pa.array(["infinity", "-Infinity", "1970-01-01", ""]),
    "texts of one kind": pa.array(["1970-01-01T00:00:00Z", "infinity", "-infinity", None]),
}


@pytest.mark.parametrize("kind", TIMES)
def test_times_that_no_calendar_has(run, tmp_path, kind):
    """Missing, counted and said; what is left has the parts of UTC."""
    frame = pa.table({"y": [0, 1, 0, 1] * 5, "a": pa.concat_arrays([TIMES[kind]] * 5)})
    parts = "year,month,weekday" if kind == "dates" else "year,week,weekday,hour"
    report = streamcut.convert(frame, tmp_path / "o.zarr", labels="y", time=f"a:{parts}")
    assert report.counters["values of a that are no times of the years 1 to 9999"] == 10
    names = streamcut.open(tmp_path / "o.zarr").recipe.names
    assert {name for name in names if "missing" not in name} >= {"a.year=1970", "a.weekday=thu"}
    assert len(names) == len(parts.split(",")) + 1
    spelled = stored(frame, tmp_path, categorical="a")
    assert spelled.recipe.names[-2:] in (("a is missing", "a=1970-01-01T00:00:00Z"), ("a=1970-01-01T00:00:00Z", "a is missing"))
    if kind.startswith("texts"):
        return
    pa.feather.write_feather(frame, tmp_path / "t.arrow")
    code, _, said = run("convert", tmp_path / "t.arrow", tmp_path / "f.zarr", "--label", "y", "--time", f"a:{parts}")
    assert code == 0
    assert "values of a that are no times of the years 1 to 9999: 10" in said


@pytest.mark.parametrize("zone", ["Mars/Phobos", "../../etc/passwd", "/dev/zero", "x" * 10_000])
@pytest.mark.parametrize("role", ["guessed", "time", "categorical"])
def test_time_zones_that_nobody_knows(run, tmp_path, zone, role):
    frame = pa.table({"y": [0, 1], "a": pa.array([0, None], pa.timestamp("us", zone))})
    pa.parquet.write_table(frame, tmp_path / "t.parquet", store_schema=True)
    given = {"guessed": (), "time": ("--time", "a:hour"), "categorical": ("--categorical", "a")}[role]
    code, _, said = run("convert", tmp_path / "t.parquet", tmp_path / "o.zarr", "--label", "y", "-q", *given)
    assert code == 3
    assert "column 'a' holds times of the time zone" in said
    assert len(said) < 400
    assert not (tmp_path / "o.zarr").exists()


def test_a_column_to_keep_whose_time_zone_nobody_knows(run, fruit, tmp_path):
    frame = pa.table({"fruit": ["fig"], "ripe": [True], "ts": pa.array([0], pa.timestamp("us", "Mars/Phobos"))})
    pa.parquet.write_table(frame, tmp_path / "t.parquet")
    code, out, said = run("predict", fruit / "m.npz", tmp_path / "t.parquet", "--keep", "ts")
    assert (code, out) == (3, "")
    assert "column 'ts' holds times of the time zone 'Mars/Phobos', which is unknown" in said


@pytest.mark.parametrize("role", ["guessed", "text", "label"])
def test_dictionaries_of_any_codes_are_plain_columns(tmp_path, role):
    """Also those that differ from piece to piece, and those of which one word is null."""

    def fingerprint(column: pa.ChunkedArray) -> str:
        frame = pa.Table.from_batches(pa.table({"y": [0, 1] * 4, "a": column, "b": np.arange(8.0)}).to_batches())
        how = {"labels": "a", "drop": "y"} if role == "label" else {"labels": "y"} | ({"text": "a"} if role == "text" else {})
        streamcut.convert(frame, tmp_path / "o.zarr", missing_labels="skip", force=True, **how)
        return streamcut.open(tmp_path / "o.zarr").manifest.fingerprint

    plain = pa.chunked_array([["x", "y", None, "y"], ["z", "x", "y", None]])
    forms = [plain.cast(pa.string_view())]
    kinds = (pa.int8(), pa.uint8(), pa.uint16(), pa.uint32(), pa.int64(), pa.uint64())
    for kind, words in [*((kind, pa.string()) for kind in kinds), (pa.uint32(), pa.string_view())]:
        codes = (pa.array([0, 1, None, 1], kind), ["x", "y"]), (pa.array([2, 1, 0, None], kind), ["y", "x", "z"])
        forms.append(pa.chunked_array([pa.DictionaryArray.from_arrays(of, pa.array(named, words)) for of, named in codes]))
    nulls = ([0, 1, 2, 1], ["x", "y", None]), ([0, 1, 2, 3], ["z", "x", "y", None])
    forms.append(pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array(of, pa.int8()), pa.array(n)) for of, n in nulls]))
    assert {fingerprint(form) for form in forms} == {fingerprint(plain)}


def test_names_with_all_that_keys_are_made_of(tmp_path):
    values = {"x=y": ["1a", "b"], "x": ["y=1a", "b"], "n=b": [1.5, 2.5], "n": ["b", "b"], "back\\": ["c", "d"], "x*n": ["e", "f"]}
    found = stored(pa.table({"y": [0, 1], **values}), tmp_path, categorical="x,n,x*n", cross="x*n")
    assert found.read(0).indptr.tolist() == [0, 7, 14]
    assert {"x\\=y=1a", "x=y=1a", "n\\=b", "n=b", "back\\\\=c", "x\\*n=e", "x*n=y\\=1a*b"} <= set(found.recipe.names)
    frame = pa.table({"y": [0, 1], "d": pa.array([0, 1], pa.timestamp("s")), "d.hour": ["1", "x"]})
    with pytest.raises(UsageError, match=r"the same features, 'd\.hour='; rename"):
        streamcut.convert(frame, tmp_path / "p.zarr", labels="y", time="d:hour")


def test_a_word_among_labels_that_are_numbers(run, tmp_path):
    """Early it is found while types are guessed, late when its row is read."""
    rows = [f"{i % 2},{i % 9}.5" for i in range(300_000)]
    for place, row in ((77, "rows? 77"), (277_777, "rows? 277777")):
        lines = [*rows[:place], "-,3.5", *rows[place:]]
        (tmp_path / "t.csv").write_text("y,x\n" + "\n".join(lines) + "\n")
        code, _, said = run("convert", tmp_path / "t.csv", tmp_path / "o.zarr", "--label", "y", "-q")
        assert code == 3
        assert re.search(row, said), said
        assert "'-'" in said
        assert "column 'y'" in said
    pa.parquet.write_table(pa.csv.read_csv(tmp_path / "t.csv"), tmp_path / "t.parquet")
    code, _, said = run("convert", tmp_path / "t.parquet", tmp_path / "o.zarr", "--label", "y", "-q")
    assert (code, "row 277777 (0-based), column 'y': label '-' is no number" in said) == (3, True), said
    assert run("convert", tmp_path / "t.csv", tmp_path / "w.zarr", "--label", "y", "--labels-as", "words")[0] == 0
    assert [word for word, _ in streamcut.open(tmp_path / "w.zarr").recipe.labels.words] == ["0", "1", "-"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("hashed", [False, True])
def test_one_label_is_0_in_one_file_and_minus_1_in_the_next(run, tmp_path, kind, hashed):
    for name, other in (("1", 0), ("2", -1)):
        frame = pa.table({"y": [1, other, 1, other], "x": list("abab")})
        (pa.csv.write_csv if kind == "csv" else pa.parquet.write_table)(frame, tmp_path / f"{name}.{kind}")
    given = ["convert", tmp_path / f"1.{kind}", tmp_path / f"2.{kind}", tmp_path / "o.zarr", "--label", "y", "-q"]
    given += ["--hash-bits", "8"] if hashed else []
    code, _, said = run(*given)
    assert code == 3
    assert f"1.{kind}: row 1 (0-based) has the label 0" in said
    assert f"2.{kind}: row 1 (0-based) has -1" in said
    assert not (tmp_path / "o.zarr").exists()
    assert run(*given, "--labels-as", "numbers")[0] == 0
    assert streamcut.open(tmp_path / "o.zarr").manifest.statistics.labels == {-1.0: 2, 0.0: 2, 1.0: 4}


def test_three_labels_are_three_labels(tmp_path):
    """Where one file has both 0 and −1, they are two."""
    for name, labels in (("1", [0, 1, 1]), ("2", [-1, 1, 1]), ("3", [-1, 0, 1])):
        pa.parquet.write_table(pa.table({"y": labels, "x": list("aba")}), tmp_path / f"{name}.parquet")
    streamcut.convert([tmp_path / f"{i}.parquet" for i in (1, 2, 3)], tmp_path / "o.zarr", labels="y")
    assert len(streamcut.open(tmp_path / "o.zarr").manifest.statistics.labels) == 3


@pytest.fixture(scope="module")
def fruit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fruit")
    frame = pa.table({"y": ["yes", "no"] * 20, "fruit": ["fig", "plum", "fig", "pear"] * 10, "ripe": [True, False] * 20})
    (folder / "new.csv").write_text("fruit,ripe,y\nkiwi,maybe,yes\nfig,true,no\nkiwi,FALSE,yes\n")
    streamcut.save_model(streamcut.train(frame, label="y"), folder / "m.npz")
    return folder


def test_what_does_not_fit_is_said(run, fruit):
    expected = {
        "values of fruit that training did not see": 2,
        "values of ripe that training did not see": 1,
        "values of ripe that are neither true nor false": 1,
    }
    with pytest.warns(UserWarning, match="values of fruit that training did not see: 2"):
        answers = streamcut.predict(fruit / "m.npz", fruit / "new.csv", answer="scores")
    assert answers.unseen == expected
    assert type(answers + 1) is np.ndarray
    assert isinstance(answers.max(), float)
    with pytest.warns(UserWarning, match="neither true nor false: 1"):
        assert streamcut.evaluate(fruit / "m.npz", fruit / "new.csv").unseen == expected
    assert streamcut.predict(fruit / "m.npz", {"fruit": "fig", "ripe": True}).unseen == {}
    for command in ("predict", "evaluate"):
        code, _, said = run(command, fruit / "m.npz", fruit / "new.csv")
        assert code == 0
        for what, count in expected.items():
            assert f"{what}: {count}" in said


def test_strict_refuses_what_does_not_fit(run, fruit):
    for use in (streamcut.predict, streamcut.evaluate):
        with pytest.raises(BadInputError, match=r"new\.csv: values of fruit that training did not see: 2"):
            use(fruit / "m.npz", fruit / "new.csv", strict=True)
    for command in ("predict", "evaluate"):
        code, out, said = run(command, fruit / "m.npz", fruit / "new.csv", "--strict")
        assert (code, out) == (3, "")
        assert "values of fruit that training did not see: 2" in said
    assert streamcut.predict(fruit / "m.npz", [{"fruit": "fig", "ripe": "TRUE"}], strict=True).tolist() == ["yes"]
    with pytest.raises(BadInputError, match="the rows: column 'ripe'"):
        streamcut.predict(fruit / "m.npz", [{"fruit": "fig", "ripe": True}, {"fruit": "fig", "ripe": "no"}])
