"""The registry of formats: what a record says is known to the command line, to `convert` and to whoever finds files."""

from __future__ import annotations

from dataclasses import fields

import click
import numpy as np
import pytest

from streamcut.cli import cli
from streamcut.data.inputs import raw_format
from streamcut.errors import BadInputError, UsageError
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.formats.finding import claim, sniff
from streamcut.io.formats.registry import ASKED, FORMATS, SCORED, kinds_with


def choices(command: str) -> list[str]:
    found = cli.get_command(click.Context(cli), command)
    (option,) = (each for each in found.params if each.name == "format")
    return list(option.type.choices)


def test_the_command_line_offers_every_format():
    assert choices("convert") == ["auto", *ASKED]
    assert choices("predict") == choices("evaluate") == ["auto", *SCORED]
    text = cli.get_command(click.Context(cli), "convert").help
    assert [name for name in ASKED if f"  {name}" not in text and f", {name}" not in text] == []


@pytest.mark.parametrize("name", FORMATS)
def test_options_of_a_format_are_options_of_convert(name):
    known = {field.name for field in fields(ConvertOptions)}
    assert set(FORMATS[name].options) <= known
    for option in FORMATS[name].options:
        assert name in kinds_with(option)


def test_a_name_claims_one_format():
    suffixes = [suffix for each in FORMATS.values() for suffix in each.suffixes]
    assert len(suffixes) == len(set(suffixes))
    assert claim("rows.JSONL.gz") is FORMATS["jsonl"]
    assert claim("rows.svm") is claim("rows") is None


@pytest.mark.parametrize("name", ["x.arrow", "x.npy", "x.parquet", "x.parquet.gz", "x.h5ad"])
def test_names_of_binary_formats_hold(tmp_path, name):
    (tmp_path / name).write_text("+1 1:2\n")
    with pytest.raises(BadInputError, match=r"the content does not \(it looks like svmlight\)"):
        sniff(str(tmp_path / name))


def test_an_anndata_file_may_have_a_column_of_barcodes(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "cells.h5ad", "w") as file:
        file["X"] = np.ones((2, 2))
        file["obs/barcodes"] = np.arange(2)
    assert sniff(str(tmp_path / "cells.h5ad")) == "anndata"
    with h5py.File(tmp_path / "matrix.h5", "w") as file:
        file["matrix/barcodes"] = np.arange(2)
    assert sniff(str(tmp_path / "matrix.h5")) == "10x"


def test_a_format_that_is_not_read_on_the_way_is_refused():
    with pytest.raises(UsageError, match="format: 'npz' is unknown; use one of auto, svmlight"):
        raw_format("x.npz", "npz")
