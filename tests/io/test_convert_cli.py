"""convert, info and check as users run them: exit codes, stdout for data, stderr for people, help that documents all options."""

import json
import os

import pytest
from reference.rows import make_rows, write_svmlight

from streamcut.errors import ExitCode


@pytest.fixture
def text(tmp_path):
    return write_svmlight(tmp_path / "a.svm", make_rows(300, 1, groups=6))


def test_convert_info_and_check(run, tmp_path, text):
    store = tmp_path / "a.zarr"
    code, out, err = run("convert", text, store, "--shard-nnz", 300)
    assert (code, out) == (0, "")
    assert "300 rows, 40 features" in err
    assert "50 groups of equal qid" in err
    assert "labels -1: " in err
    code, out, err = run("info", store, "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert (found["rows"], found["features"], found["groups"]) == (300, 40, 50)
    assert sum(rows for _, rows in found["labels"]) == 300
    assert found["shards"] == len(list((store / "shards").glob("0*")))
    assert found["bytes_on_disk"] == sum(file.stat().st_size for file in store.rglob("*") if file.is_file())
    assert found["source"]["made_from"]["inputs"] == [[str(text), text.stat().st_size]]
    code, out, _ = run("info", store)
    assert code == 0
    assert found["fingerprint"] in out
    code, out, err = run("info", store, "--check", "--read-data")
    assert (code, out) == (0, "")
    assert "sound" in err


def test_summary_as_json_and_quiet(run, tmp_path, text):
    code, out, err = run("convert", text, tmp_path / "a.zarr", "--json")
    report = json.loads(out)
    assert (code, err) == (0, "")
    assert report["outputs"][str(tmp_path / "a.zarr")]["n_rows"] == report["rows"] == 300
    assert report["plan"]["sort_bytes"] == 0 < report["plan"]["shard_nnz"]
    assert run("convert", text, tmp_path / "b.zarr", "--quiet") == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["a.svm", "a.zarr", "--memory", "1MB"], ExitCode.MEMORY, "--memory: 1.00 MB is not enough: at least"),
        (["a.svm", "a.zarr", "--memory", "100"], ExitCode.USAGE, "add a unit"),
        (["a.svm", "a.zarr", "--workers", "0"], ExitCode.USAGE, "--workers"),
        (["a.svm", "a.zarr", "--split", "2"], ExitCode.USAGE, "--split"),
        (["a.svm", "no/a.zarr"], ExitCode.NOT_FOUND, "directory does not exist"),
        (["a.svm", "a.svm"], ExitCode.USAGE, "exists"),
        (["none.svm", "a.zarr"], ExitCode.NOT_FOUND, "none.svm"),
        (["bad.svm", "a.zarr"], ExitCode.BAD_INPUT, "bad.svm:2:3: "),
        (["empty.svm", "a.zarr"], ExitCode.BAD_INPUT, "no rows"),
        (["other.zarr", "a.zarr"], ExitCode.NOT_FOUND, "neither a streamcut store nor an AnnData"),
        (["array.zarr", "a.zarr"], ExitCode.NOT_FOUND, "neither a streamcut store nor an AnnData"),
        (["a.svm", "-", "a.zarr", "--resume"], ExitCode.USAGE, "standard input cannot be read again"),
    ],
)
def test_refusals(run, tmp_path, text, monkeypatch, arguments, code, message):
    import zarr

    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.svm").write_text("1 1:1\n1 x:1\n")
    (tmp_path / "empty.svm").write_text("")
    zarr.create_group(tmp_path / "other.zarr").create_array("numbers", shape=3, dtype="i4")
    zarr.create_array(tmp_path / "array.zarr", shape=3, dtype="i4")
    before = set(os.listdir(tmp_path))
    found = run("convert", *arguments)
    assert found[0] == code
    assert message in found[2]
    assert "Traceback" not in found[2]
    assert set(os.listdir(tmp_path)) == before
