"""Damage is found, and malformed text is refused where it is wrong."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from kit.bad_input import OK, TEXTS

import streamcut
from streamcut.errors import StreamcutError


@pytest.mark.parametrize("backend", ["zarr", "hdf5"])
def test_no_flipped_bit_is_trained_on(backend, command):
    """`check` finds it, or it is of no consequence: training then fails, or gives the same weights."""
    rng, choice = np.random.default_rng(0), random.Random(1)
    X, y = sp.random_array((200, 30), density=0.3, format="csr", rng=rng), rng.integers(0, 2, 200).astype(float)
    with streamcut.create("s", shard_nnz=500, backend=backend) as out:
        out.append(X, y)
    files = [path for path in (*sorted(Path("s").rglob("*")), Path("s")) if path.is_file() and path.stat().st_size]
    weights = streamcut.train("s", solver="cpa", max_passes=2).weights
    for _ in range(60):
        file = choice.choice(files)
        sound = file.read_bytes()
        place, bit = choice.randrange(len(sound)), choice.randrange(8)
        file.write_bytes(sound[:place] + bytes([sound[place] ^ 1 << bit]) + sound[place + 1 :])
        assert command("info s --check --read-data")[0] in (3, 4, 5), (file, place, bit)
        try:
            same = np.array_equal(streamcut.train("s", solver="cpa", max_passes=2).weights, weights)
        except StreamcutError:
            same = True
        assert same, (file, place, bit)
        file.write_bytes(sound)
    assert command("info s --check --read-data")[0] == 0


@pytest.mark.parametrize(("text", "options", "code", "words"), [case[1:] for case in TEXTS], ids=[case[0] for case in TEXTS])
def test_malformed_text_is_refused_where_it_is_wrong(text, options, code, words, command):
    Path("in.svm").write_bytes(text)
    ended, _, err = command(f"convert in.svm out.zarr {options}")
    assert ended == code, err
    assert re.search(words, err, re.DOTALL), err
    assert "Traceback" not in err
    assert Path("out.zarr").exists() == (code == OK)
