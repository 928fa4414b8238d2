"""Problems of several classes whose columns are compared with trainings of their own."""

import numpy as np
import scipy.sparse as sp

REST = {"task": "multiclass", "strategy": "one-vs-rest"}


LABELS = (-1.0, 2.0, 5.0, 9.0)


def problem(n=300, d=10, *, seed=0, weights=False):
    """Noisy sparse rows of four classes of unequal size; some rows have no features."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.5, format="csr", rng=rng, data_sampler=rng.standard_normal)
    scores = X @ rng.standard_normal((d, 4)) + 0.5 * rng.standard_normal((n, 4)) + np.array([0.0, 0.5, 1.0, -1.0])
    return X, np.array(LABELS)[scores.argmax(axis=1)], rng.uniform(0.2, 3.0, n) if weights else None


def same(model, other):
    assert model.weights.tobytes() == other.weights.tobytes()
    assert model.certificates == other.certificates
    assert [own.a.tobytes() for own in model.witnesses] == [own.a.tobytes() for own in other.witnesses]


def overlap(model, other):
    """Bounds and objectives of the same problems."""
    for one, two in zip(model.certificates, other.certificates, strict=True):
        assert one.lower_bound <= two.primal * (1 + 1e-12)
        assert two.lower_bound <= one.primal * (1 + 1e-12)
