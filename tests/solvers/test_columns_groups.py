"""Fewer columns at a time than there are: what comes out is what all at once give, in less memory."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from kit.columns import overlap

import streamcut
from streamcut.errors import ExitCode

D, CLASSES = 65_000, 24


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A store with long vectors of many classes: 12.5 MB for a number of each feature and class."""
    rng, n = np.random.default_rng(0), 1000
    y = rng.integers(0, CLASSES, n)
    own = rng.integers(0, 50, (n, 20)) * CLASSES + y[:, None]
    columns = np.hstack([rng.integers(0, D, (n, 20)), own]).ravel()
    X = sp.csr_array((np.ones(40 * n, np.float32), (np.repeat(np.arange(n), 40), columns)), shape=(n, D))
    path = tmp_path_factory.mktemp("wide") / "rows.zarr"
    with streamcut.create(path) as made:
        made.append(X, y.astype(float))
    return path


def command(store, folder, memory, *options):
    """(what ended it, what it printed as JSON)"""
    fixed = [
        "train",
        str(store),
        "--task",
        "multiclass",
        "--strategy",
        "one-vs-rest",
        "--set",
        "row-cache=0",
        "--max-passes",
        "3",
    ]
    run = [sys.executable, "-P", "-c", "from streamcut.cli import main; main()", *fixed, "--json"]
    done = subprocess.run([*run, "--output", str(folder / f"{memory}.npz"), "--memory", memory], capture_output=True, text=True)
    return done, [json.loads(line) for line in done.stdout.splitlines()]


def test_memory_for_some_of_the_classes_is_enough(wide, tmp_path):
    refused, _ = command(wide, tmp_path, "10MB")
    assert refused.returncode == ExitCode.MEMORY
    least = int(re.search(r"at least (\d+)MB", refused.stderr)[1]) + 40
    command(wide, tmp_path, "3GB")  # a first run may compile, for which it takes more
    ended = {}
    for size in (least, 4000):
        done, lines = command(wide, tmp_path, f"{size}MB")
        assert done.returncode == 0, done.stderr
        ended[size] = lines[-1]["peak"]
    assert ended[least] <= least * 10**6
    assert ended[least] + 20 * 10**6 < ended[4000]
    overlap(*(streamcut.load_model(tmp_path / f"{size}MB.npz") for size in ended))
