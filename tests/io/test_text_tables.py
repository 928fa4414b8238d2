"""Tables as text: types, and CSV as other programs write it: other delimiters, decimals with a comma."""

import json

import pandas
import pytest

import streamcut

FRAME = pandas.DataFrame(
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


def test_a_comma_is_no_decimal_point_beside_points(tmp_path):
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
