"""Kernels by their definitions."""

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist


def matrix(kernel, X, Z):
    """k of every row of `X` (n × d) with every row of `Z` (m × d), NumPy or SciPy sparse: float64 (n, m)."""
    X, Z = (each.toarray() if sp.issparse(each) else np.asarray(each, np.float64) for each in (X, Z))
    if kernel.name == "rbf":
        return np.exp(-kernel.gamma * cdist(X, Z, "sqeuclidean"))
    return X @ Z.T if kernel.name == "linear" else (kernel.gamma * (X @ Z.T) + kernel.coef0) ** kernel.degree
