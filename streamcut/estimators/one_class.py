"""OneClassSVM: outliers by a plane, with a certificate, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin

from streamcut.estimators.base import is_stored
from streamcut.estimators.declared import USUAL, attribute, declared, parameter
from streamcut.estimators.parameters import CuttingPlanes
from streamcut.io.memory import MemoryDataset
from streamcut.solver_table import solvers_of


@declared
class OneClassSVM(OutlierMixin, CuttingPlanes):
    """The plane farthest from the origin that all but a part ν of the rows lie beyond, on arrays or on stores.

    The decisions are those of scikit-learn's OneClassSVM(kernel="linear"); weights differ by a factor.

    Examples
    --------
    >>> import numpy as np
    >>> from streamcut.estimators import OneClassSVM
    >>> X = np.array([[2.0, 2.1], [2.2, 2.0], [1.9, 2.0], [2.1, 2.2], [0.1, 0.2]])
    >>> OneClassSVM(nu=0.2).fit(X).predict(X).tolist()
    [1, 1, 1, 1, -1]
    """

    _solvers: ClassVar = ("auto", *solvers_of("one-class"))
    _fixed: ClassVar[dict[str, Any]] = {"task": "one-class"}
    nu: float = parameter("Part of the rows that may lie outside, above 0 and at most 1.", default=0.5)
    solver: str = parameter('"auto" is bundle-dca.', default="auto", choices=_solvers)
    row_cache: str = parameter(default=USUAL.row_cache)
    sweeps: int = parameter(default=USUAL.sweeps)
    random_state: Any = parameter("Seed of the order in which bundle-dca takes rows.", default=0, kind="int, RandomState or None")
    coef_: np.ndarray = attribute("ndarray of shape (features,)", of=lambda model: model.weights)
    offset_: float = attribute(
        "float", "`decision_function` is `score_samples`, ⟨w, x⟩, minus this.", of=lambda model: -model.intercept
    )

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on the rows of `X` (n × d, NumPy or SciPy sparse) or of a store; `y` is ignored."""
        if is_stored(X):
            data = self._stored(X)
        else:
            X = self._validated(X, reset=True)
            data = MemoryDataset(X, np.ones(X.shape[0]))
        return self._keep(self._train(data))

    def decision_function(self, X: Any) -> np.ndarray:
        """How far inside the plane rows of an array or a store are, float64 (n,); below 0 outside."""
        return self._scores(X)

    def score_samples(self, X: Any) -> np.ndarray:
        """⟨w, x⟩, float64 (n,), of the rows of an array or a store."""
        return self._scores(X) + self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """1 for rows inside, −1 for those outside, int64 (n,)."""
        return np.where(self._scores(X) > 0.0, 1, -1)
