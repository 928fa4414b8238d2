"""Training that goes on: partial_fit of the kernel machine on a budget, and models in memory to begin with."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut.config import CheckpointOptions, TrainOptions
from streamcut.errors import UsageError
from streamcut.estimators import BudgetedKernelSVM, LinearSVM
from streamcut.io.memory import MemoryDataset
from streamcut.models.files import load_model, save_model
from streamcut.training import train

SOLVERS = ("bsca", "bsgd")


def rows(classes: int = 2, n: int = 400, seed: int = 0):
    """X (csr) and y: the class of the nearest of so many centres, two of which make a class."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(1).uniform(-2.0, 2.0, (2 * classes, 4))
    X = rng.uniform(-2.0, 2.0, (n, 4))
    return sp.csr_array(X), np.argmin(((X[:, None] - centres) ** 2).sum(axis=2), axis=1) % classes


def machine(solver: str = "bsca", **options) -> BudgetedKernelSVM:
    return BudgetedKernelSVM(**{"gamma": 0.5, "C": 5.0, "budget": 60, "solver": solver, "epochs": 1.0, **options})


@pytest.mark.parametrize("solver", SOLVERS)
def test_blocks_of_a9a_are_learnt(solver, load):
    (X, y), (Xt, yt) = load("a9a"), load("a9a", "test")
    order = np.random.default_rng(0).permutation(len(y))
    svm = machine(solver, C=1.0, gamma=0.0078125, budget=100)
    for part in np.array_split(order, 10):
        svm.partial_fit(X[part], y[part], classes=[-1, 1])
    assert svm.score(Xt, yt) >= 0.83
    assert svm.support_vectors_.shape[0] <= 100
    assert svm.model_.facts["steps"] == svm.model_.facts["rows_seen"] == len(y)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("classes", [2, 3])
def test_the_first_call_is_one_epoch_of_fit(solver, classes):
    X, y = rows(classes)
    once = machine(solver).fit(X, y)
    first = machine(solver).partial_fit(X, y, classes=range(classes))
    np.testing.assert_array_equal(first.decision_function(X), once.decision_function(X))


@pytest.mark.parametrize("solver", SOLVERS)
def test_gradient_steps_go_on(solver):
    """Without a budget and in two halves, bsgd gives w = Σ over rows met inside the margin, each by the rate of its step."""
    X, y = rows(n=60)
    svm = machine(solver, budget=None, maintenance="none", C=0.5).partial_fit(X[:30], y[:30], classes=[0, 1])
    before = svm.model_
    svm.partial_fit(X[30:], y[30:])
    assert svm.model_.facts["steps"] == svm.model_.facts["rows_seen"] == 60
    old = {row.tobytes(): c for row, c in zip(before.support.toarray(), before.coefficients, strict=True)}
    new = {row.tobytes(): c for row, c in zip(svm.model_.support.toarray(), svm.model_.coefficients, strict=True)}
    kept = [new[row] / c for row, c in old.items()]
    if solver == "bsgd":
        np.testing.assert_allclose(kept, 30 / 60)  # Π over steps 31 … 60 of 1 − 1/t
        fresh = [abs(c) for row, c in new.items() if row not in old]
        np.testing.assert_allclose(fresh, 0.5 * 60 / 60)  # n C / t, shrunk by t / n
    else:
        np.testing.assert_allclose(kept, 1.0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_fit_then_partial_fit(solver):
    X, y = rows(n=800)
    names = np.array(["no", "yes"])[y]
    svm = machine(solver, gamma="auto", epochs=2.0).fit(X[:400], names[:400])
    gamma = svm.gamma_
    svm.partial_fit(X[400:600], names[400:600])
    assert svm.gamma_ == gamma
    assert svm.model_.facts["steps"] == 2 * 400 + 200
    assert svm.model_.facts["rows_seen"] == 600
    only = names[600:] == "yes"
    svm.partial_fit(X[600:][only], names[600:][only])
    assert svm.classes_.tolist() == ["no", "yes"]
    assert svm.score(X, names) > 0.7
    assert svm.fit(X[:400], names[:400]).model_.facts["steps"] == 800, "fit begins anew"


def test_classes_that_come_one_after_the_other():
    X, y = rows(3, n=900)
    names = np.array(["a", "b", "c"])[y]
    svm = machine()
    for name in ("a", "b", "c"):
        svm.partial_fit(X[names == name], names[names == name], classes=["a", "b", "c"])
        assert svm.decision_function(X).shape == (900, 3)
    for part in np.array_split(np.arange(900), 3):
        svm.partial_fit(X[part], names[part])
    assert svm.score(X, names) > 0.8
    assert svm.dual_coef_.shape == (3, svm.support_vectors_.shape[0])


def test_few_rows_do_not_lower_the_budget():
    X, y = rows()
    svm = machine(C=100.0)
    for start in range(0, 100, 10):
        svm.partial_fit(X[start : start + 10], y[start : start + 10], classes=[0, 1])
    assert 10 < svm.support_vectors_.shape[0] <= 60


def test_weights_of_rows_and_classes_count():
    X, y = rows()
    by_class = machine(class_weight={0: 1.0, 1: 3.0}).partial_fit(X, y, classes=[0, 1])
    by_row = machine().partial_fit(X, y, classes=[0, 1], sample_weight=np.where(y == 1, 3.0, 1.0))
    np.testing.assert_array_equal(by_class.decision_function(X), by_row.decision_function(X))


def test_stores_and_arrays_in_turn(tmp_path):
    X, y = rows(n=400)
    y = 2 * y - 1
    for name, part in (("a", slice(0, 200)), ("b", slice(200, 400))):
        lines = [
            f"{label} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row)) + "\n"
            for label, row in zip(y[part], X[part].toarray().tolist(), strict=True)
        ]
        (tmp_path / f"{name}.svm").write_text("".join(lines))
        streamcut.convert(str(tmp_path / f"{name}.svm"), str(tmp_path / f"{name}.zarr"), dtype="float64")
    stored = machine().partial_fit(str(tmp_path / "a.zarr")).partial_fit(str(tmp_path / "b.zarr"))
    by_turns = machine().partial_fit(str(tmp_path / "a.zarr")).partial_fit(X[200:], y[200:])
    arrays = machine().partial_fit(X[:200], y[:200], classes=[-1, 1]).partial_fit(str(tmp_path / "b.zarr"))
    for svm in (by_turns, arrays):
        np.testing.assert_array_equal(svm.decision_function(X), stored.decision_function(X))
    named = machine().partial_fit(X[:200], np.array(["a", "b"])[(y[:200] + 1) // 2], classes=["a", "b"])
    with pytest.raises(UsageError, match="labels of stores are numbers"):
        named.partial_fit(str(tmp_path / "b.zarr"))
    with pytest.raises(ValueError, match=r"store has 4 features.*expecting 3.*n_features=3"):
        machine().partial_fit(X[:, :3], y, classes=[-1, 1]).partial_fit(str(tmp_path / "b.zarr"))


def test_what_partial_fit_refuses():
    X, y = rows()
    with pytest.raises(ValueError, match="classes must be passed"):
        machine().partial_fit(X, y)
    svm = machine().partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="not the same"):
        svm.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"did not see: \[2\]"):
        svm.partial_fit(X, y + 1)
    with pytest.raises(ValueError, match="3 features"):
        svm.partial_fit(X[:, :3], y)
    with pytest.raises(ValueError, match="balanced"):
        machine(class_weight="balanced").partial_fit(X, y, classes=[0, 1])
    with pytest.raises(UsageError, match=r"was trained with kernel rbf, gamma 0\.5"):
        svm.set_params(gamma=0.25).partial_fit(X, y)
    with pytest.raises(UsageError, match="vectors, but budget is 2"):
        svm.set_params(gamma=0.5, budget=2).partial_fit(X, y)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_model_in_memory_is_as_good_as_its_file(solver, classes, tmp_path):
    X, y = rows(classes)
    options = {"kernel": "rbf", "gamma": 0.5, "budget": 40, "solver": solver, "task": "binary" if classes == 2 else "multiclass"}
    first = train(MemoryDataset(X[:200], y[:200]), **options)
    save_model(first, tmp_path / "m.npz")
    more = MemoryDataset(X[200:], y[200:])
    from_memory, from_file = (train(more, **options, warm_start=start) for start in (first, tmp_path / "m.npz"))
    np.testing.assert_array_equal(from_memory.decision_function(X), from_file.decision_function(X))
    assert from_memory.parameters["warm_start"] == "a model in memory"
    assert from_file.parameters["warm_start"] == str(tmp_path / "m.npz")
    save_model(from_memory, tmp_path / "n.npz")
    assert load_model(tmp_path / "n.npz").facts["steps"] == 400
    assert from_memory.history[0]["dual"] is None


def test_stopped_and_resumed_from_a_model_to_begin_with(tmp_path):
    X, y = rows(n=800)
    first = train(MemoryDataset(X[:400], y[:400]), kernel="rbf", gamma=0.5, budget=40)
    options = {"kernel": "rbf", "gamma": 0.5, "budget": 40, "epochs": 2.0, "warm_start": first}
    more, asked = MemoryDataset(X[400:], y[400:]), []

    def stop() -> bool:
        asked.append(True)
        return len(asked) == 2  # between the epochs

    assert len(train(more, **options, checkpoint=str(tmp_path / "run"), stop=stop).history) == 1
    resumed = train(more, **options, checkpoint=CheckpointOptions(str(tmp_path / "run"), resume=True))
    np.testing.assert_array_equal(resumed.decision_function(X), train(more, **options).decision_function(X))
    with pytest.raises(UsageError, match="start"):
        train(more, **{**options, "warm_start": resumed}, checkpoint=CheckpointOptions(str(tmp_path / "run"), resume=True))


def test_a_warm_start_from_one_c_to_the_next():
    X, y = rows(n=600)
    warm = LinearSVM(C=0.1, warm_start=True, max_iter=500)
    for C in (0.1, 0.2):
        warm.set_params(C=C).fit(X, y)
        cold = LinearSVM(C=C, max_iter=500).fit(X, y)
        assert warm.lower_bound_ <= cold.primal_objective_
        assert cold.lower_bound_ <= warm.primal_objective_
    again = warm.fit(X, y)
    assert again.history_[-1]["passes"] == 1, "it was there already"


def test_who_cannot_begin_with_a_model():
    X, y = rows(3)
    svm = LinearSVM(warm_start=True).fit(X, y)
    with pytest.raises(UsageError, match="it takes a linear one for two classes"):
        svm.fit(X, y == 1)
    linear = train(MemoryDataset(X, y == 1))
    with pytest.raises(UsageError, match="it takes a kernel model of task binary"):
        train(MemoryDataset(X, y == 1), kernel="rbf", gamma=0.5, warm_start=linear)
    assert TrainOptions(warm_start=linear).as_dict()["warm_start"] == "a model in memory"
