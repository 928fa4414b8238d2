"""scikit-learn estimators: `fit` takes arrays, the path of a store, or an opened data set.

`base.py` turns parameters into options of `train` and models into attributes; each family has its own file. A parameter is
declared once, with its description, in the class from which all its users inherit: in `base.py`, `parameters.py` or the
estimator. `declared.py` makes constructors and docstrings from declarations;
tests/faces/test_estimator_options.py finds an option of a solver that its estimator lacks.
"""

from streamcut.estimators.kernel import BudgetedKernelSVM, KernelSVM
from streamcut.estimators.linear import LinearSVM, LogisticRegression
from streamcut.estimators.one_class import OneClassSVM
from streamcut.estimators.ranking import RankingSVM
from streamcut.estimators.regression import BudgetedKernelSVR, LinearSVR
from streamcut.estimators.sequence import SequenceSVM

__all__ = [
    "BudgetedKernelSVM",
    "BudgetedKernelSVR",
    "KernelSVM",
    "LinearSVM",
    "LinearSVR",
    "LogisticRegression",
    "OneClassSVM",
    "RankingSVM",
    "SequenceSVM",
]
