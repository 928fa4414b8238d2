"""FORMAT.md says what the code does."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import streamcut
from streamcut.errors import NotFoundError
from streamcut.io.manifest import manifest_bytes, parse_manifest
from streamcut.io.stores import spec
from streamcut.io.stores.zarr_layout import array_document, root_document

pytestmark = pytest.mark.smoke

FORMAT = (Path(__file__).parents[3] / "io" / "FORMAT.md").read_text()


def table(header: str) -> list[list[str]]:
    lines = FORMAT[FORMAT.index(header) :].splitlines()[2:]
    rows = lines[: next(k for k, line in enumerate(lines) if not line.startswith("|"))]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_the_text_lists_the_arrays_and_dtypes_of_the_code():
    found = {row[0].strip("`"): tuple(row[1].split(", ")) for row in table("| array |")}
    assert found == spec.DTYPES
    sizes = {row[0].strip("`"): eval(row[2], {"rows": 7, "nnz": 20}) for row in table("| array |")}
    assert sizes == {name: spec.array_size(name, 7, 20) for name in spec.DTYPES}
    assert f"format version {spec.FORMAT_VERSION}" in FORMAT
    assert f"{spec.SHARD_NNZ} entries" in FORMAT
    for name in (spec.LOCK, spec.SCRATCH, spec.JOURNAL):
        assert f"NAME/{name}" in FORMAT


def test_the_text_shows_the_metadata_of_the_code():
    block = re.search(r"```json\n(.*?)```", FORMAT, re.DOTALL)[1]
    assert json.loads(block) == json.loads(array_document("int32", 5))
    attributes = json.loads(root_document())["attributes"]
    assert attributes.pop("streamcut") == spec.FORMAT_VERSION
    assert f"`{json.dumps(attributes)}`" in FORMAT


@pytest.fixture
def manifest(tmp_path):
    """Of the store a, of three shards."""
    with streamcut.create(tmp_path / "a", 9, shard_nnz=4) as out:
        out.append(np.arange(12.0).reshape(6, 2) @ np.eye(2, 9) / 3, [1, -1, 1, -1, 1, -1])
    return streamcut.open(tmp_path / "a").manifest


def test_the_text_lists_the_keys_of_the_manifest(manifest):
    assert {row[0].strip("`") for row in table("| key |")} == set(json.loads(manifest_bytes(manifest)))
    assert parse_manifest(manifest_bytes(manifest), "here") == manifest


def test_newer_formats_ask_for_a_newer_streamcut(manifest, tmp_path):
    (tmp_path / "a/manifest.json").write_bytes(manifest_bytes(replace(manifest, format_version=3)))
    with pytest.raises(NotFoundError, match="needs streamcut >="):
        streamcut.open(tmp_path / "a")
