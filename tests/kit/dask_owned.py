"""Workers with file systems of their own, where no folder is common to all."""

from __future__ import annotations

import os
from pathlib import Path

from kit.clusters import growing

TESTS = Path(__file__).parents[1]
PASSES = f"{TESTS}:{TESTS}/dask:{os.environ.get('PYTHONPATH', '')}"  # where workers find the passes of tests


def apart(folder, *failpoints):
    """As clusters.growing: each worker has a file system of its own where the client's scratch folder is."""
    scratch = folder / "scratch"
    scratch.mkdir()
    alone = ["unshare", "-Urm", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', scratch]
    return growing(folder, scratch, failpoints, before=alone, PYTHONPATH=PASSES)


FEW = {"solver": "bundle-dca", "lanes": 5, "row_cache": "30%", "sweeps": 4, "max_passes": 4, "tol": 1e-9, "tol_relative": None}


ASKED = [f"--{name.replace('_', '-')}={value or 0}" for name, value in FEW.items()]
