"""Writing to object storage: stores, models, checkpoints, predictions; what is interrupted, refused, and never shown."""

from __future__ import annotations

import kit.shared.remote_writing
import pytest

import streamcut
from streamcut.errors import UsageError

text = kit.shared.remote_writing.text


@pytest.mark.parametrize(
    ("url", "options", "reason"),
    [
        ("https://host/a.zarr", {}, "https:// can be read only"),
        ("file:///tmp/a.zarr", {}, "file:// can be read only"),
        ("memory://bucket/a.zarr", {"backend": "hdf5"}, "disks only"),
    ],
)
def test_urls_that_are_no_place_for_a_store(text, url, options, reason):
    with pytest.raises(UsageError, match=reason):
        streamcut.convert(text, url, **options)
