"""The power goes at any moment of a conversion, and the disk keeps no more than it promised: resuming gives the same bytes."""

from __future__ import annotations

import os

import kit.shared.store_power_loss
from kit.store_crash import content
from reference.power_loss import Recorder, left_over

quick_disk = kit.shared.store_power_loss.quick_disk


def test_the_model_of_a_disk_loses_what_was_not_synced(tmp_path):
    """Or else the tests above could not fail."""
    root = tmp_path / "live"
    root.mkdir()
    with Recorder(root) as recorder:
        with open(root / "safe", "wb") as file:
            file.write(b"whole")
            file.flush()
            os.fsync(file.fileno())
        os.replace(root / "safe", root / "renamed")
        (root / "unsafe").write_bytes(b"lost")
    for way, expected in {
        "nothing": {},
        "names": {"renamed": b"whole", "unsafe": b"\0\0\0\0"},
        "half": {"renamed": b"whole", "unsafe": b"lo"},
    }.items():
        left_over(recorder.moments[-1], tmp_path / way, way)
        assert content(tmp_path / way) == expected
