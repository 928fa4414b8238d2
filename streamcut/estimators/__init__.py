"""scikit-learn estimators: `fit` takes arrays, the path of a store, or an opened data set."""

from streamcut.estimators.kernel import BudgetedKernelSVM, KernelSVM
from streamcut.estimators.linear import LinearSVM
from streamcut.estimators.ranking import RankingSVM
from streamcut.estimators.sequence import SequenceSVM

__all__ = ["BudgetedKernelSVM", "KernelSVM", "LinearSVM", "RankingSVM", "SequenceSVM"]
