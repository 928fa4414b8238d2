"""Multinomial logistic regression: grids, refusals and commands."""

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import train
from streamcut.errors import UsageError

LABELS = (-2.0, 1.0, 3.5, 7.0)


def problem(n=150, d=8, *, seed=0, weights=False, classes=4):
    """Noisy sparse rows of several classes; some have no features."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.5, format="csr", rng=rng, data_sampler=rng.standard_normal)
    scores = X @ rng.standard_normal((d, classes)) + rng.gumbel(size=(n, classes))
    return X, np.asarray(LABELS[:classes])[scores.argmax(axis=1)], rng.uniform(0.2, 3.0, n) if weights else None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "multiclass", "strategy": "one-vs-rest"}, "strategy: loss softmax trains all classes together"),
        ({"task": "binary"}, "loss: softmax is for task multiclass; for two classes use logistic"),
        ({"task": "multiclass", "loss": "logistic"}, "loss: logistic for several classes needs strategy one-vs-rest"),
        ({"task": "multiclass", "loss": "f1"}, "loss: 'f1' is not one of task multiclass, which has hinge, softmax"),
    ],
)
def test_options_that_do_not_fit(options, message):
    X, y, _ = problem(20)
    with pytest.raises(UsageError, match=message):
        train(streamcut.rows(X, y), **{"loss": "softmax", **options})


def test_the_command_line_prints_probabilities(tmp_path, run):
    (tmp_path / "a.svm").write_text("".join(f"{k % 3} {k % 3 + 1}:1 4:0.5\n" for k in range(30)))
    assert run("convert", tmp_path / "a.svm", tmp_path / "a.zarr", "-q")[0] == 0
    given = ["--task", "multiclass", "--loss", "softmax", "--output", tmp_path / "m.npz", "-q"]
    assert run("train", tmp_path / "a.zarr", *given)[0] == 0
    code, out, said = run("predict", tmp_path / "m.npz", tmp_path / "a.svm", "--answer", "probabilities")
    assert code == 0, said
    found = np.array([line.split() for line in out.splitlines()], float)
    assert found.shape == (30, 3)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_array_equal(found.argmax(axis=1), np.arange(30) % 3)
