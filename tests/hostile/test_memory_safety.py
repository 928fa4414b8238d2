"""No number, however odd, leads compiled code out of its arrays; and arrays from outside are looked at before it sees them.

scripts/test_bounds_checked.sh runs all tests with every index checked; here is what no other test provokes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from streamcut import train
from streamcut.compiled import multiclass, row_losses
from streamcut.compiled.merging import best_h, best_partner, merging_tables
from streamcut.errors import BadInputError, CorruptError
from streamcut.io.memory import MemoryDataset
from streamcut.losses.crammer_singer import CrammerSinger
from streamcut.losses.hinge import Hinge
from streamcut.models.files import load_model, save_model

pytestmark = pytest.mark.process

TABLES = merging_tables()
ODD = [np.nan, np.inf, -np.inf, 1.0000001, 1e300, -1.0]


@pytest.mark.parametrize("odd", ODD)
def test_odd_kernel_values_find_no_place_outside_the_tables(odd):
    assert best_h(TABLES, 0.7, odd) == (1.0, 0.7)
    beta, k = np.array([1.0, 0.5, 2.0, -1.0, 100.0]), np.array([1.0, 0.3, odd, 0.2, odd])
    slot, *_ = best_partner(1, beta, k, 5, TABLES, np.empty(5, np.int32), np.empty(5))
    assert slot in (-1, 0, 2, 4)


@pytest.mark.parametrize("odd", [np.nan, np.inf, 1e300])
def test_odd_coefficients_find_no_place_outside_the_tables(odd):
    assert best_h(TABLES, odd, 0.5)[0] == 1.0
    beta, k = np.array([1.0, odd, 2.0, odd]), np.array([1.0, 0.3, 0.5, 0.2])
    for least in (0, 1):
        slot, *_ = best_partner(least, beta, k, 4, TABLES, np.empty(4, np.int32), np.empty(4))
        assert -1 <= slot < 4
        assert slot != least


def test_breakpoints_between_edges_that_are_hardly_apart_are_counted():
    edges = np.array([0.0, 4e-316, 8e-316])  # 2 / (8e-316 − 0) is infinite
    z_b, z = np.array([[1.0, -2e-16], [1.0, -5e-16], [1.0, -7e-16]]), np.array([[1.0, 1e300]] * 3)
    jumps, counts = np.zeros(2), np.zeros(2, np.int64)
    multiclass.breakpoint_histogram(CrammerSinger(2), np.zeros(3, np.int64), z_b, z, None, edges, jumps, counts)
    assert counts.tolist() == [1, 2]  # at 2.2e-316, 4.4e-316, 6.7e-316
    counts[:] = 0
    row_losses.breakpoint_histogram(Hinge(), np.array([1.0 - 2e-16] * 2), np.array([1e300, 3e299]), None, edges, jumps, counts)
    assert counts.tolist() == [1, 1]  # at 2.2e-316, 7.4e-316


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (lambda X: X.indices.__setitem__(3, 50), "indices must be < 5"),
        (lambda X: X.indices.__setitem__(3, -2), "indices must be >= 0"),
        (lambda X: X.indptr.__setitem__(1, 40), "indptr"),
    ],
)
def test_sparse_matrices_that_are_broken_are_refused(spoil, match):
    X, y = sp.random_array((20, 5), density=0.5, format="csr", rng=np.random.default_rng(0)), np.arange(20) % 2.0
    model = train(MemoryDataset(X, y), max_passes=2)
    spoil(X)
    with pytest.raises(BadInputError, match=match):
        MemoryDataset(X, y)
    with pytest.raises(BadInputError, match=match):
        model.predict(X)


@pytest.mark.parametrize("solver", ["bsca", "bsgd", "sampled-linear"])
def test_rows_without_a_finite_norm_are_refused(solver):
    X = np.array([[1e200, 0.0], [0.0, 1.0]])
    with pytest.raises(BadInputError, match="squared norm of a row is not finite"):
        train(MemoryDataset(X, np.array([0.0, 1.0])), solver=solver, kernel="rbf", gamma=1.0)


def test_fewer_features_than_the_matrix_has_are_refused():
    with pytest.raises(BadInputError, match="X has 5 features, but n_features is 3"):
        MemoryDataset(np.eye(5), np.arange(5.0), n_features=3)


def test_models_whose_parts_do_not_fit_are_refused(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), np.arange(60) % 2.0
    features = train(MemoryDataset(X, y), nystroem=20, kernel="rbf", gamma=0.5, max_passes=3)
    narrow = train(MemoryDataset(X, y), max_passes=3)
    save_model(replace(features, inner=narrow), tmp_path / "features.npz")
    with pytest.raises(CorruptError, match="4 features does not fit a map to 20"):
        load_model(tmp_path / "features.npz")
    chain = train(MemoryDataset(X, y, qid=np.arange(60) // 5), task="sequence", max_passes=3)
    none = {"weights": np.zeros((4, 0)), "intercepts": np.zeros(0), "transitions": np.zeros((0, 0))}
    meta, _ = chain.parts()
    monkeypatch.setattr(type(chain), "parts", lambda self: ({**meta, "labels": ()}, none))
    save_model(chain, tmp_path / "chain.npz")
    with pytest.raises(CorruptError, match="labels is \\[\\], not a list"):
        load_model(tmp_path / "chain.npz")
