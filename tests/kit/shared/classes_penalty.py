"""What tests/solvers/test_classes_penalty.py and tests/inside/solvers/test_classes_penalty.py share."""

import numpy as np
import pytest
import scipy.sparse as sp
from kit.nights import by_night

LABELS = (-1.0, 2.0, 5.0)
SEVERAL = {"task": "multiclass", "scheduler": "sync"}
KINDS = {
    "softmax": {"loss": "softmax"},
    "crammer-singer": {},
    "ovr-hinge": {"strategy": "one-vs-rest"},
    "ovr-logistic": {"strategy": "one-vs-rest", "loss": "logistic"},
    "ovr-squared-hinge": {"strategy": "one-vs-rest", "loss": "squared-hinge"},
}
WAYS = {"bundle-dca": {"row_cache": "50%"}, "uncached": {"row_cache": "0"}}
NIGHTLY = ("ovr-logistic", "ovr-squared-hinge")  # alike but for the loss
ROUTES = [(kind, way) for kind in KINDS for way in WAYS]
ROUTES_BY_NIGHT = [each for each in ROUTES if each[0] in NIGHTLY or each == ("ovr-hinge", "uncached")]
routes = pytest.mark.parametrize("route", by_night(ROUTES, ROUTES_BY_NIGHT), ids=" by ".join)


def problem(n=90, d=10, *, seed=0, weights=False):
    """Noisy rows of three classes, which four of the features tell apart; row weights that may be 0."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.6, format="csr", rng=rng, data_sampler=rng.standard_normal)
    scores = 2.0 * (X @ (rng.standard_normal((d, 3)) * (np.arange(d) < 4)[:, None])) + rng.gumbel(size=(n, 3))
    return X, np.asarray(LABELS)[scores.argmax(axis=1)], rng.uniform(0.2, 3.0, n) * (rng.random(n) < 0.9) if weights else None
