"""What tests/solvers/test_scale.py and tests/inside/solvers/test_scale.py share."""

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

SCALERS = {"max-abs": MaxAbsScaler(), "std": StandardScaler(with_mean=False)}


def problem(n=200, d=9, dtype=np.float64):
    """Rows whose features differ in scale by 1e8; one never occurs, one is constant."""
    rng = np.random.default_rng(0)
    X = sp.random_array((n, d), density=0.5, format="lil", rng=rng, data_sampler=rng.standard_normal)
    X[:, 3], X[:, 5] = 0.0, 2.5
    X = (X.tocsr() @ sp.diags_array(10.0 ** np.linspace(-4, 4, d))).tocsr().astype(dtype)
    X.eliminate_zeros()
    score = MaxAbsScaler().fit_transform(X) @ rng.standard_normal(d)
    return X, np.where(score + 0.1 * rng.standard_normal(n) > np.median(score), 1.0, -1.0)
