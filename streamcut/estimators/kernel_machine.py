"""What kernel machines as scikit-learn estimators have in common, for classes and for numbers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from streamcut.config import BUDGETED
from streamcut.estimators.base import StreamedEstimator
from streamcut.estimators.declared import USUAL, attribute, declared, parameter
from streamcut.execution.feed import Feed
from streamcut.oracles.variance import automatic_gamma


@declared
class KernelMachine(StreamedEstimator):
    """A kernel, and support vectors."""

    kernel: str = parameter(default="rbf")
    gamma: float | str = parameter(
        'γ; "scale" is 1 / (features × variance of all values, whatever the weights of rows), "auto" 1 / features.',
        default="scale",
        kind='float, "scale" or "auto"',
    )
    degree: int = parameter(default=USUAL.degree)
    coef0: float = parameter(default=USUAL.coef0)
    support_vectors_: Any = attribute("sparse array of shape (vectors, features)", of=lambda model: model.support)
    dual_coef_: np.ndarray = attribute(
        "ndarray of shape (1 or classes, vectors)", of=lambda model: np.atleast_2d(model.coefficients.T)
    )
    intercept_: np.ndarray = attribute(
        "ndarray of shape (1 or classes,)", of=lambda model: np.atleast_1d(np.asarray(model.intercept, dtype=np.float64))
    )
    gamma_: float = attribute("float", of=lambda model: model.kernel.gamma)

    def _options(self) -> dict[str, Any]:
        """Only parameters that the kernel has, so that a grid over kernels works; γ as `train` has it: scikit-learn's "scale" is
        "auto" there, its "auto" 1 / features.
        """
        options = super()._options()
        unused = {"linear": ("gamma", "degree", "coef0"), "rbf": ("degree", "coef0")}.get(options["kernel"], ())
        options["gamma"] = {"scale": "auto", "auto": 1.0 / self.n_features_in_}.get(options["gamma"], options["gamma"])
        return {name: value for name, value in options.items() if name not in unused}

    def _asked(self, data: Any, **given: Any) -> dict[str, Any]:
        """scikit-learn's "scale" does not count the weights of rows."""
        asked = super()._asked(data, **given)
        begins = (start := asked.get("warm_start")) is None or start.n_support == 0
        if asked.get("gamma") == "auto" and begins and data.manifest.statistics.weight_sum is not None:
            asked["gamma"] = automatic_gamma(Feed(data), weighted=False)
        return asked


@declared
class OnBudget(KernelMachine):
    """BSCA or BSGD: at most `budget` support vectors for each score."""

    _solvers: ClassVar = BUDGETED

    solver: str = parameter("Dual coordinate ascent, or stochastic gradient steps (Pegasos).", default="bsca", choices=_solvers)
    budget: int | None = parameter(default=USUAL.budget)
    maintenance: str = parameter(default=USUAL.maintenance)
    epochs: float = parameter("Epochs.", default=5.0)
    random_state: Any = parameter("Seed of the order of rows.", default=0, kind="int, RandomState or None")
