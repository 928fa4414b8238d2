"""FORMAT.md says what the code does; and its parts one by one: codec, metadata, manifest, types, shard borders, journal."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.shard_cuts import cuts

from inside.kit.contracts.store import make_rows
from streamcut.errors import BadInputError
from streamcut.foundation.chunk import Chunk
from streamcut.io.dataset import shard_cuts
from streamcut.io.manifest import StatisticsBuilder
from streamcut.io.stores import codec, spec
from streamcut.io.stores.manifest_file import manifest_bytes, parse_manifest
from streamcut.io.stores.structure import first_problem, smallest
from streamcut.io.stores.writer import StoreWriter
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


def test_the_text_lists_the_keys_of_the_manifest(tmp_path):
    with StoreWriter(tmp_path / "a", options={}) as writer:
        writer.append(make_rows("ones").chunk(), {})
        manifest = writer.finish({})
    assert {row[0].strip("`") for row in table("| key |")} == set(json.loads(manifest_bytes(manifest)))
    assert parse_manifest(manifest_bytes(manifest), "here") == manifest


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float32", "float64"])
def test_zarr_python_and_we_read_each_others_chunks(tmp_path, dtype):
    array = (np.arange(10_000) % 100).astype(dtype)
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours/zarr.json").write_bytes(array_document(dtype, len(array)))
    payload = codec.encode(array)
    (tmp_path / "ours/c.0").write_bytes(payload + codec.trailer(codec.crc32c(payload)))
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "ours", mode="r")[...], array)

    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/zarr.json").write_bytes(array_document(dtype, len(array)))
    zarr.open_array(tmp_path / "theirs", mode="r+")[...] = array
    content = np.fromfile(tmp_path / "theirs/c.0", np.uint8)
    out = np.empty_like(array)
    codec.decode(content[:-4], out)
    np.testing.assert_array_equal(out, array)
    assert codec.read_trailer(content[-4:]) == codec.crc32c(content[:-4])


def test_frames_that_lie_about_their_length_are_refused():
    array = np.arange(1000)
    payload = np.frombuffer(codec.encode(array), np.uint8)
    for frame in (payload[:-1], payload[:8], np.append(payload, np.uint8(0))):
        with pytest.raises(ValueError, match="bytes"):
            codec.decode(frame, np.empty_like(array))
    with pytest.raises(ValueError, match="bytes"):
        codec.decode(payload, np.empty(999, array.dtype))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-130, 130).map(float), min_size=1, max_size=8))
def test_narrowing_keeps_every_value_and_nothing_smaller_would(numbers):
    values = np.array(numbers)
    dtype, ones = smallest(values)
    with np.errstate(all="ignore"):
        keeps = [name for name in spec.VALUES if (values.astype(name).astype(np.float64) == values).all()]
    assert dtype == keeps[0]
    assert ones == (values == 1).all()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), min_size=1, max_size=40),
    st.integers(1, 24),
    st.booleans(),
)
def test_shard_borders_depend_on_the_rows_alone(rows, shard_nnz, grouped):
    lengths = [length for length, _ in rows]
    qid = np.cumsum([step == 0 for _, step in rows]) if grouped else None
    indptr = np.cumsum([0, *lengths])
    chunk = Chunk(indptr, np.zeros(indptr[-1], np.int32), None, np.zeros(len(rows)), qid)
    found = [stop - start for start, stop in shard_cuts(chunk, shard_nnz)]
    assert found == cuts(lengths, None if qid is None else qid.tolist(), shard_nnz)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 3), st.randoms(use_true_random=False))
def test_the_structure_check_sees_every_single_fault(fault, random):
    rows = make_rows("gaps")
    indptr, indices, data = rows.X.indptr.astype(np.int64), rows.X.indices.copy(), rows.X.data.copy()
    assert first_problem(indptr, indices, data, {"y": rows.y}, 300) is None
    long = random.choice(np.flatnonzero(np.diff(indptr) > 1).tolist())
    t = random.randrange(int(indptr[long]), int(indptr[long + 1]) - 1)
    if fault == 0:
        indices[t], indices[t + 1] = indices[t + 1], indices[t]
    elif fault == 1:
        indices[indptr[long + 1] - 1] = 300 + random.randrange(10**6)
    elif fault == 2:
        indices[indptr[long]] = -1 - random.randrange(10**6)
    else:
        data[t] = random.choice([np.nan, np.inf, -np.inf])
    assert first_problem(indptr, indices, data, {"y": rows.y}, 300)[0] == ("data" if fault == 3 else "indices")


def test_the_structure_check_sees_bad_row_pointers():
    rows = make_rows("text")
    for place, value in ((0, 1), (0, -1), (200, 0), (200, 10**12), (-1, 5)):
        indptr = rows.X.indptr.astype(np.int64)
        indptr[place] = value
        assert first_problem(indptr, rows.X.indices, rows.X.data, {"y": rows.y}, 300)[0] == "indptr"


def test_groups_are_counted_across_blocks():
    rows, found = make_rows("queries").chunk().rows(0, 9), StatisticsBuilder()
    rows = replace(rows, qid=np.array([4, 4, 5, 5, 5, 7, 8, 8, 4]))
    for start, end in ((0, 1), (1, 3), (3, 6), (6, 9)):
        found.add(rows.rows(start, end))
    assert found.finish().groups == 5


def test_rows_that_cannot_be_summed_are_named_by_their_numbers(tmp_path):
    rows = Chunk(np.arange(8), np.arange(7) % 3, np.where(np.arange(7) == 5, 1e200, 1.0), np.ones(7))

    def write() -> None:
        with StoreWriter(tmp_path / "rows.zarr", shard_nnz=100, options={}) as store:
            store.append(rows, {})
            store.finish({})

    with pytest.raises(BadInputError, match=r"rows 0…6: data or weight is so large"):
        write()
