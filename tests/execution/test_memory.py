"""Training, and commands that use a model, keep to their memory: a refusal names what is enough, and peaks stay below it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import kit.shared.memory
import numpy as np
import pytest
import scipy.sparse as sp
from kit.shared.memory import ROOM, STREAMCUT, command, least, result_within, write

import streamcut
from streamcut import load_model, save_model, train
from streamcut.errors import ExitCode, MemoryBudgetError

several = kit.shared.memory.several


pytestmark = pytest.mark.process


def test_folds_trained_together_keep_the_promise_and_share_their_passes(tmp_path):
    """3 folds and everything, with the least memory that is accepted, and with more, in which 40 MB of rows do not fit either."""
    write(tmp_path / "rows.zarr", 100_000)
    how = "--force --json --tol 0 --tol-relative 0 --C 0.01 --folds 3 --max-passes 3 --memory"
    line = [*STREAMCUT, "train", str(tmp_path / "rows.zarr"), "--output", str(tmp_path / "m.npz"), *how.split()]
    done = subprocess.run([*line, "1MB"], capture_output=True, text=True, timeout=600)
    assert done.returncode == ExitCode.MEMORY
    least = int(re.search(r"at least (\d+)MB", done.stderr)[1]) * 10**6
    for budget, groups in ((least, 4), (least + ROOM, 1)):
        result = result_within(budget, [*line, f"{budget}B"])  # again where it compiled, which takes more
        assert result["peak"] <= budget
        assert 1 <= result["groups"] <= groups
        assert result["readings"] <= 3 * result["groups"] + 1, "3 passes to train each group, one to measure"


def test_newton_is_left_out_where_only_dual_ascent_fits(tmp_path):
    """No ceiling from the least on is refused, whichever solver is chosen."""
    X, store = sp.random_array((5000, 120), density=0.1, format="csr", rng=np.random.default_rng(0)), tmp_path / "few.zarr"
    with streamcut.create(store, 120, shard_nnz=1 << 14) as out:
        out.append(X, np.arange(5000.0) % 2)
    minimum, found = int(least(store, tmp_path, "--loss", "logistic").removesuffix("MB")), []
    for more in (0, 100):
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


def test_there_are_fewer_threads_before_a_refusal(several, tmp_path):
    limits = ["--max-passes", "2", "--set", "lanes=4", "--set", "row-cache=0"]
    line = [*STREAMCUT, "train", str(several), "--task", "multiclass", *limits, "--json", "--quiet"]
    models = [tmp_path / f"{name}.npz" for name in ("one", "two")]
    refused = [
        subprocess.run([*line, "--output", str(models[0]), "--memory", "1MB", *more], capture_output=True, text=True, timeout=120)
        for more in ([], ["--workers", "2"])
    ]
    least = [int(re.search(r"at least (\d+)MB", done.stderr)[1]) for done in refused]
    assert least[1] > least[0] + 5
    assert "1 workers" in refused[0].stderr
    for model, budget in zip(models, (least[0] + 3, least[1] + 100), strict=True):
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
        for each in dense.proofs:
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
            assert all(np.array_equal(stored[f"proofs.{k}.a"], each.a) for k, each in enumerate(dense.proofs))


# --- commands that use a model --------------------------------------------------------------------------------------------------

ROWS = 200_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """rows.zarr, ROWS rows of two classes, and m.npz that was trained on them."""
    folder = tmp_path_factory.mktemp("ceilings")
    rng = np.random.default_rng(0)
    X = sp.csr_array((np.ones(4 * ROWS, np.float32), rng.integers(0, 500, 4 * ROWS), np.arange(0, 4 * ROWS + 1, 4)), (ROWS, 500))
    X.sum_duplicates()
    y = np.where(X[:, :200].sum(axis=1) > rng.integers(0, 3, ROWS), 1.0, -1.0)
    with streamcut.create(folder / "rows.zarr", 500, shard_nnz=1 << 17) as out:
        out.append(X, y)
    streamcut.train(folder / "rows.zarr", max_passes=2).save(folder / "m.npz")
    return folder


def test_a_model_says_what_it_takes_before_it_takes_it(folder, tmp_path, run):
    model = load_model(folder / "m.npz")
    weights = np.zeros(5_000_000)
    weights[7] = 0.1
    save_model(replace(model, weights=weights, proofs=()), tmp_path / "wide.npz")
    sizes: list[int] = []
    assert (load_model(tmp_path / "wide.npz", sizes.append).weights == weights).all()
    assert (tmp_path / "wide.npz").stat().st_size < 10**6
    assert sizes[0] >= weights.nbytes
    for path, rows, said in (
        ("wide.npz", folder / "rows.zarr", r"the model: 40\.0 MB"),
        (folder / "m.npz", np.ones((2, 500)), "2 rows"),
    ):
        with pytest.raises(MemoryBudgetError, match=said):
            streamcut.predict(tmp_path / path, rows, memory="1MB")
    for data in ([], [folder / "rows.zarr"]):
        code, out, err = run("explain", tmp_path / "wide.npz", *data, "--memory", "1MB")
        assert (code, out) == (ExitCode.MEMORY, "")
        assert "the model: 40.0 MB" in err


CHILD = """
import atexit, os, sys
STATUS = "/proc/self/status"  # ru_maxrss would begin with what the parent had
peak = lambda: next(line.split()[1] for line in open(STATUS) if line.startswith("VmHWM")) if os.path.exists(STATUS) else 0
atexit.register(lambda: print("peak", 1024 * int(peak()), file=sys.stderr))
from streamcut.cli import main
main()
"""
COMMANDS = {
    "evaluate": ["evaluate", "m.npz", "rows.zarr"],
    "predict": ["predict", "m.npz", "rows.zarr", "-o", "p.txt", "--force"],
    "calibrate": ["calibrate", "m.npz", "rows.zarr", "-o", "calibrated.npz", "--force"],
    "verify": ["verify", "m.npz", "rows.zarr"],
}


def ran(folder: Path, line: list[str], memory: str) -> tuple[int, str, int]:
    """(exit code, stderr, peak) of a command in a process of its own."""
    command = [sys.executable, "-P", "-c", CHILD, *line, "--memory", memory]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr, int(re.search(r"peak (\d+)", done.stderr)[1])


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_refusal_names_is_enough(folder, name):
    code, said, _ = ran(folder, COMMANDS[name], "1MB")
    assert (code, "--memory" in said) == (ExitCode.MEMORY, True), said
    megabytes = int(re.search(r"at least (\d+)MB", said)[1])
    code, said, peak = ran(folder, COMMANDS[name], f"{megabytes}MB")
    assert code == 0, said
    assert peak <= megabytes * 10**6 or sys.platform != "linux" or name not in ("evaluate", "predict"), "others compile"


# --- the first run on a machine compiles its kernels --------------------------------------------------------------------------

NOTICE = "compiling kernels (first use; this run may take 150 MB more than its memory budget)…\n"


def test_a_first_run_says_once_that_it_compiles_and_keeps_its_limits(tmp_path):
    """Compilation takes far longer than the time limit; the run ends with the first model that it has."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 20))
    with streamcut.create(tmp_path / "rows.zarr", 20) as out:
        out.append(X, np.where(X[:, 0] + rng.standard_normal(300) > 0.0, 1.0, -1.0))
    environment = {**os.environ, "STREAMCUT_KERNELS": "", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-P", "-m", "streamcut", "train", "rows.zarr", "-o", "m.npz", "--force", "--memory", "250MB"]
    command += ["--solver", "ocas", "--tol", "0", "--tol-relative", "0"]

    def trained(*more: str):
        done = subprocess.run([*command, *more], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=400)
        assert done.returncode == 0, done.stderr
        return done, streamcut.load_model(tmp_path / "m.npz")

    first, model = trained("--max-time", "1s")
    assert first.stderr.count(NOTICE) == 1
    assert model.certificate.stop_reason == "time"
    assert len(model.history) <= 2
    assert model.history[-1]["seconds"] >= 1.0
    second, compiled = trained("--max-passes", "1")
    assert NOTICE not in second.stderr
    assert compiled.history[-1]["seconds"] < model.history[-1]["seconds"]
    assert max(model.resources["peak"], compiled.resources["peak"]) <= 400_000_000
    result = json.loads(trained("--max-passes", "1", "--json")[0].stdout.splitlines()[-1])
    assert result["peak"] <= result["planned"] <= 250_000_000
