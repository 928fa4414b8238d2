"""What kernel machines as scikit-learn estimators have in common, for classes and for numbers."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from streamcut.config import BUDGETED
from streamcut.estimators.base import StreamedEstimator
from streamcut.estimators.declared import USUAL, attribute, declared, parameter
from streamcut.models.kernel import KernelModel
from streamcut.models.model import Model


@declared
class KernelMachine(StreamedEstimator):
    """A kernel, and support vectors."""

    kernel: str = parameter(default="rbf")
    gamma: float | str = parameter(
        'γ; "scale" is 1 / (features × variance of all values), "auto" 1 / features.',
        default="scale",
        kind='float, "scale" or "auto"',
    )
    degree: int = parameter(default=USUAL.degree)
    coef0: float = parameter(default=USUAL.coef0)
    support_vectors_: Any = attribute("sparse array of shape (vectors, features)")
    dual_coef_: np.ndarray = attribute("ndarray of shape (1 or classes, vectors)")
    intercept_: np.ndarray = attribute("ndarray of shape (1 or classes,)")
    gamma_: float = attribute("float")

    def _options(self) -> dict[str, Any]:
        """γ in scikit-learn's terms: its "scale" is what `train` calls "auto", its "auto" is 1 / features."""
        options = super()._options()
        if options["gamma"] == "auto" and options["kernel"] != "linear":
            return {**options, "gamma": 1.0 / self.n_features_in_}
        return {**options, "gamma": "auto"} if options["gamma"] in ("scale", "auto") else options

    def _keep(self, model: Model, *, warn: bool = True) -> Self:
        assert isinstance(model, KernelModel)
        self.support_vectors_, self.dual_coef_ = model.support, np.atleast_2d(model.coefficients.T)
        self.intercept_ = np.atleast_1d(np.asarray(model.intercept, dtype=np.float64))
        self.gamma_ = model.kernel.gamma
        return super()._keep(model, warn=warn)


@declared
class OnBudget(KernelMachine):
    """BSCA or BSGD: at most `budget` support vectors for each score."""

    _solvers: ClassVar = BUDGETED

    solver: str = parameter("Dual coordinate ascent, or stochastic gradient steps (Pegasos).", default="bsca", choices=_solvers)
    budget: int | None = parameter(default=USUAL.budget)
    maintenance: str = parameter(default=USUAL.maintenance)
    epochs: float = parameter("Epochs.", default=5.0)
    random_state: Any = parameter("Seed of the order of rows.", default=0, kind="int, RandomState or None")
