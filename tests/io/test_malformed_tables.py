"""Tables with something wrong: each is refused by a message that names the file and the row, and nothing is half-written."""

from __future__ import annotations

import os
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamcut

BAD, USAGE = 3, 2
USERS, CROWD = ("click,site\n" + "".join(f"{i % 2},u{i}\n" for i in range(count)) for count in (2000, 250_001))
GOOD = "click,site,price\n" + "".join(f"{i % 2},{'abc'[i % 3]},{i}.5\n" for i in range(40))


def refused(run, folder, arguments: str, code: int, reason: str) -> None:
    """The command, whose words are names in `folder`, ends so, and leaves nothing new behind."""
    before = sorted(os.listdir(folder))
    words = [str(folder / word) if "." in word else word for word in arguments.split()]
    found, _, said = run(*words)
    assert found == code, said
    last = said.strip().splitlines()[-1]
    assert re.search(reason, last), last
    assert "Traceback" not in said
    assert sorted(os.listdir(folder)) == before


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """m.npz, a model of click by site and price, and the table it is of."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "good.csv").write_text(GOOD)
    model = streamcut.train(folder / "good.csv", label="click")
    streamcut.save_model(model, folder / "m.npz")
    return folder / "m.npz"


CONVERT = "convert bad.csv out.zarr --label click -q --memory 4GB"


@pytest.mark.parametrize(
    ("content", "options", "code", "reason"),
    [
        pytest.param(GOOD + "1,a,cheap\n", "", USAGE, r"column 'price' .* row 40 .*'cheap'.*--numeric", id="mixed types"),
        pytest.param(GOOD + "1,a\n", "", BAD, r"bad\.csv: .*(row|line) ?#?4[0-9].*[23] columns", id="too few cells"),
        pytest.param("click,site,site\n1,a,b\n", "", BAD, r"bad\.csv: .*'site'", id="duplicate names"),
        pytest.param("", "", BAD, r"bad\.csv: .*(empty|no )", id="empty file"),
        pytest.param("click,site,price\n", "", BAD, r"no rows", id="only a head"),
        pytest.param(GOOD + ",a,1\n", "", BAD, r"bad\.csv: row 40 \(0-based\).*'click'.*label is missing", id="label is null"),
        pytest.param(USERS, "--max-categories 500 --categorical site", BAD, r"more than 500 .*'site'.*--hash-bits 22", id="many"),
        pytest.param(CROWD, "--categorical site", BAD, r"more than 250,000 .*'site'.*--hash-bits 22", id="too many by default"),
        pytest.param(USERS, "", USAGE, r"no column is left .*'site': nearly all values differ", id="an identifier"),
        pytest.param(GOOD, "--label clik", USAGE, r"bad\.csv: no column 'clik'.*click", id="no such label"),
        pytest.param(GOOD + "1,,2\n", "--missing error", BAD, r"row 40 \(0-based\), column 'site': no value", id="no category"),
        pytest.param(GOOD + "2,a,1\n", "--label-map 0=-1,1=1", BAD, r"row 40 .*'click': label '2' is none of", id="other label"),
        pytest.param(GOOD + "inf,a,1\n", "", BAD, r"row 40 .*'click': label inf is not finite", id="endless label"),
        pytest.param(GOOD, "--missing error --numeric site", BAD, r"bad\.csv: .*(site|'a')", id="words as numbers"),
    ],
)  # fmt: skip
def test_bad_csv(run, tmp_path, content, options, code, reason):
    (tmp_path / "bad.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(run, tmp_path, f"{CONVERT} {options}", code, reason)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_are_counted_with_those_that_are_left_out(run, tmp_path, kind):
    """Those without a label, before a qid that comes back."""
    table = pa.table({"click": [1, None, 0, 1, 0], "q": [1, 1, 2, 1, 3], "price": [1.0, 2.0, 3.0, 4.0, 5.0]})
    pq.write_table(table, tmp_path / "bad.parquet")
    (tmp_path / "bad.csv").write_text("click,q,price\n1,1,1\n,1,2\n0,2,3\n1,1,4\n0,3,5\n")
    given = f"convert bad.{kind} out.zarr --label click --qid q --missing-labels skip -q"
    refused(run, tmp_path, given, BAD, r"bad\.\w+: row 3 \(0-based\): qid 1 comes back")


def test_files_with_other_columns(run, tmp_path):
    (tmp_path / "1.csv").write_text(GOOD)
    (tmp_path / "2.csv").write_text("click,site,cost\n1,a,2\n")
    given = "convert 1.csv 2.csv out.zarr --label click -q"
    refused(run, tmp_path, given, BAD, r"2\.csv: no column 'price'; it has .*cost")
    (tmp_path / "2.csv").write_text("click,site,price,cost\n1,a,2,3\n")
    refused(run, tmp_path, given, BAD, r"2\.csv: other columns than .*1\.csv.*'cost'")


def test_files_with_their_columns_in_another_order_are_one_table(run, tmp_path):
    (tmp_path / "1.csv").write_text(GOOD)
    (tmp_path / "2.csv").write_text("price,click,site\n" + "".join(f"{i}.5,{i % 2},{'abc'[i % 3]}\n" for i in range(40)))
    assert run("convert", tmp_path / "1.csv", tmp_path / "2.csv", tmp_path / "o.zarr", "--label", "click", "-q")[0] == 0
    data = streamcut.open(tmp_path / "o.zarr").read(0)
    np.testing.assert_array_equal(data.indices[: len(data.indices) // 2], data.indices[len(data.indices) // 2 :])


@pytest.mark.parametrize(
    ("column", "options", "reason"),
    [
        (pa.array([[1, 2]] * 4), "--numeric x", r"bad\.parquet: column 'x' holds list"),
        (pa.array([{"a": 1}] * 4), "--categorical x", r"bad\.parquet: .*'x'.*struct"),
        (pa.array([b"1"] * 4), "--numeric x", r"bad\.parquet: .*'x'.*binary"),
        (pa.array([1.0, np.inf, 2.0, 3.0]), "", r"bad\.parquet: row 1 \(0-based\), column 'x': inf is not finite"),
        (pa.array([1, 2**60 + 1, 3, 4]), "--numeric x", r"bad\.parquet: row 1 .*'x'.*more digits"),
        (pa.array(["2024-01-01", "soon", None, ""]), "--time x:month", r"bad\.parquet: row 1 .*'x'.*'soon' is not an ISO 8601"),
    ],
)
def test_bad_columns(run, tmp_path, column, options, reason):
    pq.write_table(pa.table({"click": [0, 1, 0, 1], "x": column, "site": list("abab")}), tmp_path / "bad.parquet")
    refused(run, tmp_path, f"convert bad.parquet out.zarr --label click -q {options}", BAD, reason)


def test_damaged_files(run, tmp_path):
    pq.write_table(pa.table({"click": [0, 1] * 500, "x": np.random.default_rng(0).random(1000)}), tmp_path / "bad.parquet")
    whole = (tmp_path / "bad.parquet").read_bytes()
    for name, content, reason in (
        ("bad.parquet", whole[:4] + b"\xff" * 40 + whole[44:], r"bad\.parquet: .*damaged"),
        ("bad.parquet", whole[:-50], r"bad\.parquet: not a readable Parquet file"),
        (
            "bad.jsonl",
            b'{"click": 1, "x": "\xc3\xa4"}\n\n{"click": 0, "x": "\xff"}\n',
            r"bad\.jsonl: row 1 \(0-based\): not UTF-8",
        ),
        ("bad.jsonl", b'{"click": 1, "x": 2}\n{"click": 0, "x": \n', r"bad\.jsonl"),
    ):
        (tmp_path / name).write_bytes(content)
        refused(run, tmp_path, f"convert {name} out.zarr --label click -q", BAD, reason)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("site\na\n", r"new\.csv: no column 'price'; it has site"),
        ("Site,price\na,1\n", r"new\.csv: no column 'site' \(is 'Site' meant\?\)"),
        ("site,price\na,1\nb,cheap\n", r"new\.csv: .*(price|cheap)"),
        ("site,price,price\na,1,2\n", r"new\.csv: .*'price'"),
        ("", r"new\.csv: "),
        ("site,price\n", r"new\.csv: no rows"),
    ],
)
def test_tables_to_be_scored(run, tmp_path, model, content, reason):
    (tmp_path / "new.csv").write_text(content)
    (tmp_path / "m.npz").write_bytes(model.read_bytes())
    refused(run, tmp_path, "predict m.npz new.csv -o answers.csv", BAD, reason)


def test_a_column_of_another_type_when_scoring(run, tmp_path, model):
    pq.write_table(pa.table({"site": ["a", "b"], "price": ["1", "2"]}), tmp_path / "new.parquet")
    (tmp_path / "m.npz").write_bytes(model.read_bytes())
    refused(run, tmp_path, "predict m.npz new.parquet -o answers.csv", BAD, r"new\.parquet: column 'price' holds string.*numeric")
