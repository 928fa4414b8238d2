"""What kernel machines as scikit-learn estimators have in common, whether they predict classes or numbers."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from streamcut.config import BUDGETED, CHOICES
from streamcut.estimators.base import StreamedEstimator
from streamcut.estimators.declared import attribute, declared, parameter
from streamcut.models.kernel import KernelModel
from streamcut.models.model import Model


@declared
class KernelMachine(StreamedEstimator):
    """A kernel, and support vectors."""

    kernel: str = parameter(
        "exp(−γ‖x − x′‖²), (γ⟨x, x′⟩ + coef0)^degree or ⟨x, x′⟩.", default="rbf", choices=("rbf", "poly", "linear")
    )
    gamma: float | str = parameter(
        'γ; "scale" is 1 / (features × variance of all values), "auto" 1 / features.',
        default="scale",
        kind='float, "scale" or "auto"',
    )
    degree: int = parameter('Of kernel "poly".', default=3)
    coef0: float = parameter('Of kernel "poly".', default=0.0)
    support_vectors_: Any = attribute("sparse array of shape (vectors, features)")
    dual_coef_: np.ndarray = attribute("ndarray of shape (1 or classes, vectors)")
    intercept_: np.ndarray = attribute("ndarray of shape (1 or classes,)")
    gamma_: float = attribute("float")

    def _options(self) -> dict[str, Any]:
        """γ by scikit-learn's words: its "scale" is what `train` calls "auto", its "auto" is 1 / features."""
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
    budget: int | None = parameter("Support vectors at most, for each of more than two classes; None: 500.", default=None)
    maintenance: str = parameter(
        'What is done to keep the budget; "auto": "merge" for kernel "rbf", else "project"; "none": there is no budget.',
        default="auto",
        choices=CHOICES["maintenance"],
    )
    merged: int = parameter("Vectors that merging makes one of; more is faster and less exact.", default=2)
    damping: float = parameter("bsca: the last part of an epoch, in which steps fall to nothing.", default=0.5)
    epochs: float = parameter("Epochs.", default=5.0)
    progress_rows: int | None = parameter(
        "bsca: rows on which each epoch measures, for history_, which part of a step's progress the budget costs.", default=None
    )
    random_state: Any = parameter("Seed of the order of rows.", default=0, kind="int, RandomState or None")
