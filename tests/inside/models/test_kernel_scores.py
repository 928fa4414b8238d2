"""The last bits of kernel scores, which depend on how ‖support‖² is summed and in which blocks products are: they stay."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from streamcut.compiled.kernel_rows import kernel_rows
from streamcut.kernels.kernel import Kernel
from streamcut.models.kernel import KernelModel
from streamcut.problem import Problem

BLOCK = 1 << 18  # kernel values
RNG = np.random.default_rng(11)


def rows(n: int, far: float) -> csr_array:
    X = csr_array(random_array((n, 60), density=0.3, rng=RNG, data_sampler=RNG.standard_normal))
    return X if far == 0.0 else csr_array(X.toarray() + far * (np.arange(60) % 3 == 0))


@pytest.mark.parametrize(
    "kernel", [Kernel("linear"), Kernel("rbf", 0.05), Kernel("poly", 0.05, 3, 1.0)], ids=lambda kernel: kernel.name
)
@pytest.mark.parametrize("far", [0.0, 1000.0])
def test_bits_of_scores_stay(kernel, far):
    support, X, coefficients = rows(500, far), rows(1100, far), RNG.standard_normal(500)
    model = KernelModel(problem=Problem(labels=(-1.0, 1.0)), support=support, coefficients=coefficients, kernel=kernel)
    near = model.near
    chunk = near.moved(model._rows(X))
    if near.centre is None:
        V, squares = support.toarray(), np.asarray(support.multiply(support).sum(axis=1)).ravel()
    else:
        V = near.centre.moved_there(support.toarray())
        squares = np.einsum("ij,ij->i", V, V)
    values = np.empty((1100, 500))
    kernel_rows(
        chunk.indptr, chunk.indices, chunk.data, np.ascontiguousarray(V.T), squares, kernel.compiled, np.empty(500), values
    )
    at_once = BLOCK // 500
    expected = [values[i : i + at_once] @ coefficients[:, None] for i in range(0, 1100, at_once)]
    assert model.decision_function(X).tobytes() == np.concatenate(expected)[:, 0].tobytes()
    assert (near.centre is not None) == (far > 0.0 and kernel.name == "rbf")
