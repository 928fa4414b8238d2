"""The list of what is accepted and what is refused, through the command line; the number of the row begins the test's id.

What only the parser decides is in test_svmlight.py as well, in more variants; here it is the exit code, and that the message
names file, line and column. No row here leaves anything behind, and none a traceback.
"""

from __future__ import annotations

from dataclasses import replace

import kit.shared.bad_input
import pytest
from kit.bad_input import MISSING
from kit.shared.bad_input import refused

from streamcut.io.stores.manifest_file import manifest_bytes, read_manifest

folder = kit.shared.bad_input.folder
store = kit.shared.bad_input.store
model = kit.shared.bad_input.model


pytestmark = pytest.mark.smoke


@pytest.mark.parametrize(
    "command", ["info good.zarr", "info good.zarr --check", "train good.zarr -o x.npz", "predict m.npz good.zarr"]
)
def test_45_a_newer_format(run, model, store, command, monkeypatch):
    from streamcut.io.stores import manifest_file

    manifest = replace(read_manifest(store / "manifest.json"), format_version=3)
    monkeypatch.setattr(manifest_file, "NEEDS", "9.9")
    (store / "manifest.json").write_bytes(manifest_bytes(manifest))
    refused(run, command, MISSING, "needs streamcut >= 9.9")
