"""Random waves: their inner products are about the Gaussian kernel, and models carry them along."""

import numpy as np
import scipy.sparse as sp
from reference.kernels import matrix

from streamcut.foundation.chunk import Chunk, csr_arrays
from streamcut.kernels.fourier import FourierMap
from streamcut.kernels.kernel import Kernel

GAMMA = 0.3


def rows(n=120, d=7, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.5, rng=rng, format="csr", data_sampler=rng.normal)
    indptr, indices, data, _ = csr_arrays(X)
    return X, Chunk(indptr, indices, data, np.zeros(n))


def error(features: np.ndarray, X) -> float:
    Z = features.astype(np.float64)
    return float(np.sqrt(np.mean((Z @ Z.T - matrix(Kernel("rbf", GAMMA), X, X)) ** 2)))


def test_more_waves_are_closer_to_the_kernel_by_the_square_root():
    X, chunk = rows()
    kernel = Kernel("rbf", GAMMA)
    few, many = (
        np.mean([error(FourierMap.drawn(kernel, 7, count, seed).features(chunk), X) for seed in range(8)]) for count in (64, 1024)
    )
    assert 3.0 < few / many < 5.3


def test_rows_have_length_one_and_frequencies_the_right_size():
    _, chunk = rows()
    waves = FourierMap.drawn(Kernel("rbf", GAMMA), 7, 2000, 3)
    np.testing.assert_allclose((waves.features(chunk).astype(np.float64) ** 2).sum(axis=1), 1.0, rtol=1e-6)
    np.testing.assert_allclose((waves.frequencies.astype(np.float64) ** 2).mean(), 2 * GAMMA, rtol=0.06)
