"""convert, info and check as users run them: exit codes, stdout for data, stderr for people, help that documents all options."""

import json
import os
from dataclasses import fields

import click
import kit.shared.convert_cli

from streamcut import convert
from streamcut.cli import cli
from streamcut.cli.convert import progress_line
from streamcut.errors import ExitCode
from streamcut.io.conversion.options import CONVERT_SETTINGS, ConvertOptions
from streamcut.io.conversion.progress import Progress
from streamcut.io.stores.zarr_layout import chunk_name

text = kit.shared.convert_cli.text


def test_check_lists_every_problem(run, tmp_path, text):
    store = tmp_path / "a.zarr"
    convert(text, store, shard_nnz=300)
    os.remove(store / chunk_name(0, "data"))
    with open(store / chunk_name(1, "indices"), "r+b") as file:
        file.seek(20)
        byte = file.read(1)
        file.seek(20)
        file.write(bytes([byte[0] ^ 1]))
    code, out, err = run("info", store, "--check")
    assert code == ExitCode.CORRUPT
    assert len(out.splitlines()) == 1
    code, out, err = run("info", store, "--check", "--read-data", "--json")
    report = json.loads(out)
    assert code == ExitCode.CORRUPT
    assert not report["sound"]
    assert len(report["problems"]) == 2
    assert "2 problems found" in err
    assert run("info", tmp_path / "none", "--check")[0] == ExitCode.NOT_FOUND


def test_help_documents_every_option():
    named = {param.name for param in cli.get_command(click.Context(cli), "convert").params}
    assert {field.name for field in fields(ConvertOptions)} <= named | set(CONVERT_SETTINGS)


def test_progress_lines():
    assert progress_line(Progress("reading", 12345, 0.25, 5 * 10**6, 10.0)) == "reading  12,345 rows  25 %  500 kB/s  ETA 0:30"
    assert progress_line(Progress("reading", 1000, None, None, 10.0)) == "reading  1,000 rows  100 rows/s"
    assert progress_line(Progress("writing", 10, 1.0, None, 10.0)) == "writing  10 rows  100 %  1 rows/s"
