"""scikit-learn estimators: `fit` takes arrays, the path of a store, or an opened data set."""

from streamcut.estimators.linear import LinearSVM

__all__ = ["LinearSVM"]
