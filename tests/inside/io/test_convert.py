"""Labels by a map, and stores whose bytes nothing but the data decides."""

import os

import kit.shared.convert
import pytest
from reference.rows import store_bytes, write_svmlight

from streamcut import convert
from streamcut.errors import NotFoundError
from streamcut.foundation.systems import resident_bytes
from streamcut.io.conversion.options import ConvertOptions

rows = kit.shared.convert.rows


def test_label_maps_come_as_text_files_and_dictionaries(tmp_path):
    (tmp_path / "map").write_text("ham=-1\nspam=1\n")
    (tmp_path / "a.svm").write_text("ham 1:1\nspam 1:1\nspam 2:1\n")
    for given_map in ("ham=-1,spam=1", str(tmp_path / "map"), {"ham": -1, "spam": 1}):
        report = convert(tmp_path / "a.svm", tmp_path / "a.zarr", label_map=given_map, force=True)
        assert report.outputs[str(tmp_path / "a.zarr")].labels == {-1.0: 1, 1.0: 2}
    with pytest.raises(NotFoundError, match="neither word=number"):
        ConvertOptions(label_map="nothing")


def test_equal_data_make_equal_stores_whatever_the_threads_blocks_and_times(tmp_path, rows):
    text = write_svmlight(tmp_path / "a.svm", rows)
    convert(text, tmp_path / "1.zarr", threads=1, shard_nnz=300)
    os.utime(text, (1, 1))
    convert(text, tmp_path / "2.zarr", threads=2, memory=resident_bytes() + 120 * 10**6, shard_nnz=300)
    assert store_bytes(tmp_path / "1.zarr") == store_bytes(tmp_path / "2.zarr")
