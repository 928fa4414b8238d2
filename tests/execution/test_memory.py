"""Training keeps its memory promise: the peak is what the plan says, whatever the size of the data, and bits don't move."""

from __future__ import annotations

import re
import subprocess
import tracemalloc
from dataclasses import replace

import kit.shared.memory
import numpy as np
import pytest
import scipy.sparse as sp
from kit.shared.memory import ROOM, STREAMCUT, command, least, result_within

import streamcut
from streamcut import load_model, save_model, train
from streamcut.errors import ExitCode

stores = kit.shared.memory.stores
queries = kit.shared.memory.queries


pytestmark = pytest.mark.process


def test_folds_trained_together_keep_the_promise_and_share_their_passes(stores, tmp_path):
    """3 folds and everything, with the least memory that is accepted, which the data do not fit in."""
    fixed = ["--output", str(tmp_path / "m.npz"), "--force", "--json", "--tol", "0", "--tol-relative", "0"]
    given = [*fixed, "--C", "0.01", "--folds", "3", "--max-passes", "3", "--memory"]
    done = subprocess.run([*STREAMCUT, "train", str(stores[4]), *given, "1MB"], capture_output=True, text=True, timeout=600)
    assert done.returncode == ExitCode.MEMORY
    least = re.search(r"at least (\d+)MB", done.stderr).group(1)
    subprocess.run([*STREAMCUT, "train", str(stores[4]), *given, "2GB"], check=True, timeout=600)  # may compile, which takes more
    for budget, groups in ((int(least) * 10**6, 4), (int(least) * 10**6 + ROOM, 1)):
        whole = [*STREAMCUT, "train", str(stores[4]), *given, f"{budget}B"]
        result = result_within(budget, whole)
        assert result["peak"] <= budget
        assert 1 <= result["groups"] <= groups
        assert result["readings"] <= 3 * result["groups"] + 1, "3 passes to train each group, one to measure"


def test_newton_is_left_out_where_only_dual_ascent_fits(tmp_path):
    """No ceiling from the least on is refused, whichever solver is chosen."""
    X, store = sp.random_array((5000, 120), density=0.1, format="csr", rng=np.random.default_rng(0)), tmp_path / "few.zarr"
    with streamcut.create(store, 120, shard_nnz=1 << 14) as out:
        out.append(X, np.arange(5000.0) % 2)
    minimum, found = int(least(store, tmp_path, "--loss", "logistic").removesuffix("MB")), []
    for more in (0, 5, 10, 100):
        done = command(store, tmp_path, f"{minimum + more}MB", "--loss", "logistic", "--max-passes", "1")
        assert done.returncode == 0, done.stderr
        found.append(streamcut.load_model(tmp_path / "m.npz").solver)
    assert (found[0], found[-1]) == ("bundle-dca", "newton")


def test_short_memory_means_a_shorter_bundle_unless_one_was_asked_for(tmp_path):
    X = sp.random_array((400, 60_000), density=1e-3, format="csr", rng=np.random.default_rng(0))
    with streamcut.create(tmp_path / "wide.zarr", 60_000) as out:
        out.append(X, np.where(np.arange(400) % 3, 1.0, -1.0))
    line = [*STREAMCUT, "train", str(tmp_path / "wide.zarr"), "--output", str(tmp_path / "m.npz"), "--force", "--solver", "ocas"]
    cuts, models = [], []
    for memory in ("240MB", "20GB"):
        done = subprocess.run([*line, "--workers", "1", "--tol", "1e-2", "--memory", memory], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        models.append(load_model(tmp_path / "m.npz"))
        cuts += [int(re.search(r"bundle of (\d+) cuts", what)[1]) for what, _ in models[-1].resources["plan"] if "bundle" in what]
    assert 20 <= cuts[0] < cuts[1] == (16 << 20) // 60_001
    for model in models:
        assert model.converged
        assert models[0].certificate.lower_bound <= model.certificate.primal
    done = subprocess.run([*line, "--memory", "240MB", "--set", "max-cuts=279"], capture_output=True, text=True)
    assert done.returncode == ExitCode.MEMORY
    assert re.search("bundle of 279 cuts.*lower one of --set max-cuts", done.stderr)


def test_there_are_fewer_threads_before_a_refusal(queries, tmp_path):
    limits = ["--max-passes", "2", "--set", "lanes=4", "--set", "row-cache=0"]
    line = [*STREAMCUT, "train", str(queries), "--task", "multiclass", *limits, "--json", "--quiet"]
    models = [tmp_path / f"{name}.npz" for name in ("one", "two")]
    refused = [
        subprocess.run([*line, "--output", str(models[0]), "--memory", "1MB", *more], capture_output=True, text=True, timeout=120)
        for more in ([], ["--workers", "1"], ["--workers", "2"])
    ]
    least = [int(re.search(r"at least (\d+)MB", done.stderr)[1]) for done in refused]
    assert abs(least[0] - least[1]) <= 2, "megabytes: what a process has by then varies"
    assert least[2] > least[1] + 5
    assert "1 workers" in refused[0].stderr
    for model, budget in zip(models, (least[1] + 3, least[2] + 100), strict=True):
        result = result_within(budget * 10**6, [*line, "--output", str(model), "--memory", f"{budget}MB", "--force"])
        assert result["peak"] <= budget * 10**6
    first, second = (streamcut.load_model(model) for model in models)
    np.testing.assert_array_equal(first.weights, second.weights)


def test_a_model_of_many_classes_is_written_without_a_copy_of_what_it_has(tmp_path):
    """Of 40 problems with 40 proofs, as they come from training, and as they come from a file."""
    rng, classes = np.random.default_rng(0), 40
    X = sp.random_array((400, 1 << 15), density=1e-3, format="csr", rng=rng)
    trained = train((X, np.arange(400) % classes), strategy="one-vs-rest", task="multiclass", max_passes=2)
    path = tmp_path / "m.npz"
    save_model(trained, path)
    for model in (trained, load_model(path)):
        dense = replace(model, weights=rng.normal(size=model.weights.shape))
        for each in dense.witnesses:
            each.a[:] = rng.normal(size=each.a.shape)
        tracemalloc.start()
        try:
            save_model(dense, path)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 0.6 * dense.weights.nbytes  # pieces of 2 MB, one byte for a number
        with np.load(path) as stored:
            assert np.array_equal(stored["weights"], dense.weights)
            assert all(np.array_equal(stored[f"witnesses.{k}.a"], each.a) for k, each in enumerate(dense.witnesses))
