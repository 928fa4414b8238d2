"""Scaling as a training option: that of scikit-learn's scalers, with a certificate of the scaled problem, anywhere it runs."""

import numpy as np
import pytest
import scipy.sparse as sp
from kit.clusters import two_workers
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import streamcut
from streamcut.config import CheckpointOptions
from streamcut.errors import UsageError
from streamcut.execution.scaled import ScaledDataset
from streamcut.io.memory import MemoryDataset
from streamcut.io.opening import open_dataset
from streamcut.models.files import load_model, save_model
from streamcut.prediction import predict
from streamcut.training import train
from streamcut.verification import verify

SCALERS = {"max-abs": MaxAbsScaler(), "std": StandardScaler(with_mean=False)}
EXACT = {"tol": 1e-6, "tol_relative": None, "scheduler": "sync"}


def problem(n=200, d=9, dtype=np.float64):
    """Rows whose features differ in scale by 1e8; one never occurs, one is constant."""
    rng = np.random.default_rng(0)
    X = sp.random_array((n, d), density=0.5, format="lil", rng=rng, data_sampler=rng.standard_normal)
    X[:, 3], X[:, 5] = 0.0, 2.5
    X = (X.tocsr() @ sp.diags_array(10.0 ** np.linspace(-4, 4, d))).tocsr().astype(dtype)
    X.eliminate_zeros()
    score = MaxAbsScaler().fit_transform(X) @ rng.standard_normal(d)
    return X, np.where(score + 0.1 * rng.standard_normal(n) > np.median(score), 1.0, -1.0)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    X, y = problem(dtype=np.float32)
    path = tmp_path_factory.mktemp("scale") / "rows.zarr"
    with streamcut.create(path, X.shape[1], shard_nnz=300) as out:
        out.append(X, y)
    return str(path)


@pytest.mark.parametrize("scale", SCALERS)
def test_values_are_those_of_scikit_learn(scale):
    X, y = problem()
    data = ScaledDataset(MemoryDataset(X, y, shard_nnz=300), scale)
    parts = [data.read(k) for k in range(len(data.manifest.shards))]
    found = sp.vstack([sp.csr_array((p.data, p.indices, p.indptr), (p.n_rows, X.shape[1])) for p in parts]).toarray()
    expected = SCALERS[scale].fit_transform(X).toarray()
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    known = data.manifest.statistics
    assert np.abs(found).max() == known.max_abs_value
    assert (found**2).sum(axis=1).max() <= known.max_squared_norm


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("solver", ["bundle-dca", "ocas"])
@pytest.mark.parametrize("scale", SCALERS)
def test_a_model_is_that_of_scaled_rows(tmp_path, scale, solver, loss):
    X, y = problem()
    options = {"solver": solver, "loss": loss, **EXACT}
    model = train(MemoryDataset(X, y), scale=scale, l1=0.1, **options)
    there = train(MemoryDataset(SCALERS[scale].fit_transform(X), y), l1=0.1, **options)
    assert model.certificate.lower_bound <= there.certificate.primal
    assert there.certificate.lower_bound <= model.certificate.primal
    np.testing.assert_array_equal(predict(model, X), there.predict(SCALERS[scale].transform(X)))
    save_model(model, tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    checked = verify(again, (X, y))
    assert checked.same_data
    assert checked.consistent
    assert again.weights[3] == 0.0
    with pytest.raises(UsageError, match="fingerprints"):
        verify(again, (2.0 * X, y))


def test_regression(store):
    X, _ = problem()
    y = X @ np.logspace(4, -4, X.shape[1])
    model = train(MemoryDataset(X, y), task="regression", scale="std", **EXACT)
    assert model.converged
    assert verify(model, (X, y)).consistent


def test_a_checkpoint_is_of_one_scale(store, tmp_path):
    whole = train(store, scale="std", **EXACT)
    keep = CheckpointOptions(str(tmp_path / "run"), every=0.0, resume=True)
    train(store, scale="std", checkpoint=keep, **{**EXACT, "max_passes": 3})
    assert train(store, scale="std", checkpoint=keep, **EXACT).weights.tobytes() == whole.weights.tobytes()
    for other in ("none", "max-abs"):
        with pytest.raises(UsageError, match="scale"):
            train(store, scale=other, checkpoint=keep, **EXACT)


def test_a_cluster_gives_the_bits_of_threads(store, tmp_path):
    options = {"scale": "std", "lanes": 2, "max_passes": 6, "tol": 1e-9, "tol_relative": None}
    here = train(store, workers=2, **options)
    with two_workers() as client:
        there = train(store, scheduler=client, scratch=str(tmp_path), **options)
    assert there.weights.tobytes() == here.weights.tobytes()
    assert there.certificate == here.certificate


def test_the_plan_is_kept(store):
    plans = []
    model = train(store, scale="max-abs", on_plan=plans.append, **EXACT)
    assert any("divisors" in what for what, _ in plans[0].lines)
    assert model.parameters["scale"] == "max-abs"
    assert open_dataset(store).manifest.fingerprint != model.fingerprint


@pytest.mark.parametrize(
    "options",
    [{"loss": "f1"}, {"kernel": "rbf", "nystroem": 5, "solver": "ocas"}, {"kernel": "rbf"}],
)
def test_it_is_for_linear_models_of_single_rows(options):
    with pytest.raises(UsageError, match="scale"):
        train(MemoryDataset(*problem()), scale="std", **options)
