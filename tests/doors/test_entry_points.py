"""Ways into the package, and what they say when something ends early."""

from __future__ import annotations

import importlib

import distributed
import numpy as np

import streamcut


def test_a_cluster_whose_processes_end_while_they_start_is_lost_and_no_script_is_blamed(tmp_path, run, monkeypatch):
    with streamcut.create(tmp_path / "rows.zarr") as out:
        out.append(np.eye(4), np.array([1.0, 1.0, -1.0, -1.0]))

    def ended(**options):
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr(distributed, "LocalCluster", ended)
    code, _, err = run(
        "train", tmp_path / "rows.zarr", "-o", tmp_path / "m.npz", "--scheduler", "local-cluster", "--workers", "1"
    )
    assert code == 11
    assert "Nanny failed to start" in err
    assert "__main__" not in err


def test_importing_the_main_module_runs_nothing():
    importlib.reload(importlib.import_module("streamcut.__main__"))
