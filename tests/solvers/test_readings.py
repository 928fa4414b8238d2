"""Readings: how often a training reads its rows, counted by the data set itself and said by the model."""

import json

import numpy as np
from sklearn.datasets import dump_svmlight_file

import streamcut
from streamcut import load_model


def test_the_commands_print_them(run, tmp_path):
    X = np.eye(4).repeat(40, axis=0)
    store, model = tmp_path / "d.zarr", tmp_path / "m.npz"
    dump_svmlight_file(X, np.arange(160) % 2, str(tmp_path / "d.svm"), zero_based=False)
    streamcut.convert(str(tmp_path / "d.svm"), str(store))
    lines = [json.loads(line) for line in run("train", store, "--output", model, "--json")[1].splitlines()]
    assert lines[-1]["readings"] == load_model(str(model)).readings >= 1.0
    tuned = run("train", store, "--output", tmp_path / "t.npz", "--C", "1,2", "--folds", 2, "--json")[1]
    assert json.loads(tuned.splitlines()[-1])["readings"] >= 1.0
