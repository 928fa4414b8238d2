"""Kernel models on a budget from the command line: measured as they go, shown, gone on with."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from streamcut.errors import ExitCode

RBF = ("--kernel", "rbf", "--gamma", 0.5, "--C", 4, "--budget", 30, "--quiet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """two.svm: inside a circle or not (600 rows); three.svm: three rings of them."""
    folder = tmp_path_factory.mktemp("budgeted")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    square = np.square(X).sum(axis=1)
    dump_svmlight_file(sp.csr_matrix(X), np.where(square < 2.4, 1, -1), str(folder / "two.svm"), zero_based=False)
    dump_svmlight_file(sp.csr_matrix(X), np.digitize(square, [1.5, 3.5]), str(folder / "three.svm"), zero_based=False)
    return folder


@pytest.fixture
def stores(folder, run):
    for name in ("two", "three"):
        if not (folder / f"{name}.zarr").exists():
            assert run("convert", folder / f"{name}.svm", folder / f"{name}.zarr")[0] == 0
    return folder / "two.zarr", folder / "three.zarr"


def test_several_classes_with_validation(run, stores, tmp_path):
    three, model = stores[1], tmp_path / "m.npz"
    options = (*RBF[:-1], "--gamma", "auto", "--task", "multiclass", "--set", "epochs=3", "--validation", three, "--json")
    code, out, _ = run("train", three, "--output", model, *options)
    assert code == 0
    epochs = [line for line in map(json.loads, out.splitlines()) if line["event"] == "iteration"]
    assert [line["epoch"] for line in epochs] == [1.0, 2.0, 3.0]
    assert epochs[-1]["validation"] == pytest.approx(json.loads(run("evaluate", model, three, "--json")[1])["accuracy"])
    assert epochs[-1]["validation"] > 0.85


def test_a_warm_start_from_another_kernel_is_refused(run, stores, tmp_path):
    assert run("train", stores[0], "--output", tmp_path / "m.npz", *RBF)[0] == 0
    other = ("--warm-start", tmp_path / "m.npz", "--output", tmp_path / "n.npz", "--kernel", "rbf", "--gamma", 1)
    code, _, err = run("train", stores[0], *other)
    assert code == ExitCode.USAGE
    assert "was trained with kernel rbf, gamma 0.5; use the same" in err
