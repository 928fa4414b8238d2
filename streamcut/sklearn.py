"""scikit-learn estimators whose parameters are the options of `streamcut.train`, under the same names.

`StreamcutClassifier` (classes, and labels of sequences), `StreamcutRegressor`, `StreamcutRanker` and `StreamcutOutlierDetector`
take all that `train` takes; `LinearSVM`, `LogisticRegression`, `KernelSVM` and `LinearSVR` only have other defaults. `fit` takes
arrays (NumPy, SciPy sparse), frames by a recipe, or a store: `fit("train.zarr")`. Constructors and docstrings are made from the
declarations of options (streamcut.options), so a new option is a parameter at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_consistent_length
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from streamcut.calibration import calibrate
from streamcut.errors import BadInputError, UsageError
from streamcut.estimator import Estimator, grouped, is_stored, of_model, spelled
from streamcut.io.memory import MemoryDataset
from streamcut.loss_table import LOG_ODDS
from streamcut.prediction import predict

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

__all__ = [
    "KernelSVM",
    "LinearSVM",
    "LinearSVR",
    "LogisticRegression",
    "StreamcutClassifier",
    "StreamcutOutlierDetector",
    "StreamcutRanker",
    "StreamcutRegressor",
]
_ALL_CLASSES = {"logistic": "softmax"}  # losses of two classes, and what they are for several at once


def _probable(estimator: Estimator) -> bool:
    """Whether a classifier has probabilities, or will have them once it is fitted."""
    model = vars(estimator).get("model_")
    if model is not None:
        return model.has_probabilities
    return _ALL_CLASSES.get(estimator.loss, estimator.loss) in LOG_ODDS


class StreamcutClassifier(ClassifierMixin, Estimator):
    """Linear or kernel classifier for two or more classes, and for labels of sequences, on arrays or on stores.

    Several classes are trained jointly, or each against the rest (`strategy`, and solver "smo" always); loss "logistic" of all
    classes together is "softmax". `classes_` are the classes, in order; `transitions_[j, k]` is what label k after label j adds
    to the score of a sequence. Probabilities: losses that imply them, and `calibrate`.

    Examples
    --------
    >>> import numpy as np
    >>> from streamcut.sklearn import StreamcutClassifier
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 2.0], [2.0, 0.0]]), np.array(["up", "down", "up", "down"])
    >>> svm = StreamcutClassifier(C=10.0).fit(X, y)
    >>> svm.predict([[0.0, 3.0]]).tolist(), bool(svm.lower_bound_ <= svm.primal_objective_)
    (['up'], True)
    """

    _tasks = ("binary", "multiclass", "sequence")
    _usual: ClassVar = {"task": "auto", "class_weight": None}
    transitions_ = of_model(lambda self: self.model_.transitions)

    def fit(self, X: object, y: object = None, sample_weight: object = None, groups: ArrayLike | None = None) -> Self:
        """Train on `X` (n × d) and `y` (n), or on a store: its path, or opened; `groups` (n): the sequence of each row."""
        if self.task not in ("auto", "sequence"):
            raise UsageError(f"task: {self.task!r} is neither 'auto' nor 'sequence'")
        sequences = groups is not None or self.task == "sequence"
        if is_stored(X):
            data = self._stored(X, y=y, sample_weight=sample_weight, groups=groups, class_weight=self.class_weight)
            labels = data.manifest.statistics.labels
            if labels is None:
                raise UsageError("the store has too many different labels for classes")
            self.classes_ = self._labels = np.array(sorted(labels))
            return self._fit(data, **self._problem(sequences))
        Z, y, sample_weight = self._rows(X, y, sample_weight, numeric=False)
        if y.dtype.kind not in "biuU":  # fractional numbers, and objects of any kind
            check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._labels = np.arange(len(self.classes_), dtype=np.float64)
        if self.classes_.dtype.kind in "biuf" and np.all(np.diff(numbers := self.classes_.astype(np.float64)) > 0):
            self._labels = numbers  # else they are words
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise ValueError(f"{type(self).__name__} needs two classes or more, but the data has one class only: {only!r}")
        weight = self._weighted(codes, y, sample_weight)
        groups = np.arange(len(y)) if sequences and groups is None else groups
        self._fit(grouped(Z, self._labels[codes], weight, groups), **self._problem(sequences))
        return self._with_support(Z, codes)

    def _problem(self, sequences: bool) -> dict[str, str]:
        """The options of `train` that follow from the classes."""
        if sequences or len(self.classes_) == 2:
            return {"task": "sequence" if sequences else "binary", "strategy": "crammer-singer"}  # which is the default
        loss, apart = spelled("loss", self.loss), spelled("strategy", self.strategy) == "one-vs-rest"
        return {"task": "multiclass", "loss": loss if apart else _ALL_CLASSES.get(loss, loss)}

    def _weighted(self, codes: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray | None:
        """Row weights times class weights. "balanced": a row of weight 2 counts as two rows, one of weight 0 as none."""
        sums = np.bincount(codes, weight, len(self.classes_))
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            with np.errstate(divide="ignore"):
                factors = sums.sum() / (len(sums) * sums.astype(float))
        else:
            factors = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        if len(wrong := self.classes_[~(factors >= 0.0)]):  # NaN, too
            raise UsageError(f"class_weight: that of class {wrong.tolist()[0]!r} is not a number above 0")
        if len(absent := self.classes_[~(sums * factors > 0.0)]):
            raise BadInputError(
                f"all rows of class {absent.tolist()[0]!r} have weight 0: there is nothing to learn of it; change its "
                "class_weight or sample_weight, or leave its rows out"
            )
        if self.class_weight is None:
            return weight
        return factors[codes] if weight is None else weight * factors[codes]

    def _codes(self, y: np.ndarray) -> np.ndarray:
        """The numbers 0, 1, … of the classes `y` (n,)."""
        codes = np.searchsorted(self.classes_, y)
        if not np.array_equal(self.classes_.take(codes, mode="clip"), y):
            unknown = sorted(set(np.unique(y).tolist()) - set(self.classes_.tolist()))
            raise ValueError(
                f"there are labels that fit did not see: {unknown[:5]}; the classes are {self.classes_[:10].tolist()}"
            )
        return codes

    def decision_function(self, X: object) -> np.ndarray:
        """Scores, float64 (n,) or (n, classes), of the rows of an array, a frame or a store; of sequences without transitions."""
        return self._scores(X)

    def predict(self, X: object, groups: ArrayLike | None = None) -> np.ndarray:
        """The classes of the rows of an array, a frame or a store; `groups` (n): the sequence of each row."""
        check_is_fitted(self, "model_")
        if self.model_.task != "sequence":
            labels = self.model_.labels_of(self.decision_function(X))
        elif is_stored(X):
            labels = np.asarray(predict(self.model_, X))
        else:
            Z = self._validated(X, reset=False)
            sequence = np.arange(Z.shape[0]) if groups is None else column_or_1d(groups)
            check_consistent_length(Z, sequence)
            order, labels = np.argsort(sequence, kind="stable"), np.empty(Z.shape[0])
            labels[order] = self.model_.predict(Z[order], sequence[order])
        return self.classes_[np.searchsorted(self._labels, labels)]

    @available_if(_probable)
    def predict_proba(self, X: object) -> np.ndarray:
        """Probabilities of the classes, float64 (n, K); only for losses that imply them, and after `calibrate`."""
        check_is_fitted(self, "model_")
        positive = self.model_.probabilities_of(self.decision_function(X))
        return positive if positive.ndim == 2 else np.column_stack([1.0 - positive, positive])

    @available_if(_probable)
    def predict_log_proba(self, X: object) -> np.ndarray:
        """Logarithms of `predict_proba`; −∞ where a probability is too small for a number."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def calibrate(self, X: object, y: object = None, sample_weight: object = None) -> Self:
        """Fit probabilities on held-out rows, arrays or a store: Platt's for two classes, else a softmax of scores."""
        check_is_fitted(self, "model_")
        if is_stored(X):
            self._expect_numbers()
            data = X
        else:
            X, y, weight = self._rows(X, y, sample_weight, numeric=False, reset=False)
            data = MemoryDataset(X, self._labels[self._codes(y)], weight=weight)
        self.model_ = calibrate(self.model_, data)
        return self

    def score(self, X: object, y: object = None, sample_weight: object = None, groups: ArrayLike | None = None) -> float:
        """Mean accuracy on an array with labels, or on a store."""
        if is_stored(X):
            return float(self.evaluate(X).accuracy)
        return float(accuracy_score(y, self.predict(X, groups), sample_weight=sample_weight))


class LinearSVM(StreamcutClassifier):
    """The linear support vector machine: `StreamcutClassifier` with loss "hinge"."""

    _usual: ClassVar = {"loss": "hinge"}


class LogisticRegression(StreamcutClassifier):
    """Logistic regression: `StreamcutClassifier` with loss "logistic", which for several classes together is "softmax"."""

    _usual: ClassVar = {"loss": "logistic"}


class KernelSVM(StreamcutClassifier):
    """The exact kernel machine with a certificate: `StreamcutClassifier` with kernel "rbf" and solver "smo"."""

    _usual: ClassVar = {"kernel": "rbf", "solver": "smo"}


class StreamcutRegressor(RegressorMixin, Estimator):
    """Linear or kernel regression by any loss of numbers, on arrays or on stores.

    Examples
    --------
    >>> import numpy as np
    >>> from streamcut.sklearn import StreamcutRegressor
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> StreamcutRegressor(C=1000.0, tol_relative=1e-6).fit(X, [1.0, 3.0, 5.0, 7.0]).predict([[4.0]]).round(1).tolist()
    [9.0]
    """

    _tasks = ("regression",)

    def fit(self, X: object, y: object = None, sample_weight: object = None) -> Self:
        """Train on `X` (n × d) and targets `y` (n), or on a store: its path, or opened."""
        if is_stored(X):
            return self._fit(self._stored(X, y=y, sample_weight=sample_weight), task="regression")
        X, y, weight = self._rows(X, y, sample_weight, numeric=True)
        self._fit(MemoryDataset(X, y.astype(np.float64), weight=weight), task="regression")
        return self._with_support(X, np.zeros(len(y), np.int64))

    def predict(self, X: object) -> np.ndarray:
        """Predicted numbers, float64 (n,): the scores, or e^score for "poisson"."""
        scores = self._scores(X)
        return self.model_.labels_of(scores)

    def score(self, X: object, y: object = None, sample_weight: object = None) -> float:
        """R² on an array with targets, or on a store."""
        return float(self.evaluate(X).r2) if is_stored(X) else super().score(X, y, sample_weight)


class LinearSVR(StreamcutRegressor):
    """Support vector regression: `StreamcutRegressor` with loss "epsilon-insensitive" and ε = 0, as scikit-learn's LinearSVR."""

    _usual: ClassVar = {"loss": "epsilon-insensitive", "epsilon": 0.0}


class StreamcutRanker(Estimator):
    """Linear ranking function: of two rows of one query the one with the greater label is to score higher."""

    _tasks = ("ranking",)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: object, y: object = None, groups: ArrayLike | None = None) -> Self:
        """Train on `X` (n × d), numbers `y` (n) and the query of each row (n; None: a single query), or on a store."""
        if is_stored(X):
            return self._fit(self._stored(X, y=y, groups=groups), task="ranking")
        X, y, _ = self._rows(X, y, None, numeric=True)
        if y.dtype.kind not in "biuf":
            raise ValueError(f"y: rows are ranked by numbers, not by {y.dtype} such as {y.tolist()[0]!r}")
        if np.ptp(y) == 0:
            raise ValueError(f"all labels are {y[0]:g}: there is nothing to rank (n_samples={len(y)})")
        return self._fit(grouped(X, y, None, groups), task="ranking")

    def decision_function(self, X: object) -> np.ndarray:
        """Scores, float64 (n,), of the rows of an array, a frame or a store: higher ones come first."""
        return self._scores(X)

    predict = decision_function

    def score(self, X: object, y: object = None, groups: ArrayLike | None = None) -> float:
        """Fraction of pairs within a query with different labels that are in the right order (ties count half)."""
        if not is_stored(X):
            check_is_fitted(self, "model_")
            X, y, _ = self._rows(X, y, None, numeric=True, reset=False)
            X = grouped(X, y, None, groups)
        return float(self.evaluate(X).pairwise_accuracy)


class StreamcutOutlierDetector(OutlierMixin, Estimator):
    """The plane farthest from the origin that all but a part ν of the rows lie beyond, on arrays or on stores.

    The decisions are those of scikit-learn's OneClassSVM(kernel="linear"); weights differ by a factor. `decision_function` is
    `score_samples`, ⟨w, x⟩, minus `offset_`.

    Examples
    --------
    >>> import numpy as np
    >>> from streamcut.sklearn import StreamcutOutlierDetector
    >>> X = np.array([[2.0, 2.1], [2.2, 2.0], [1.9, 2.0], [2.1, 2.2], [0.1, 0.2]])
    >>> StreamcutOutlierDetector(nu=0.2).fit(X).predict(X).tolist()
    [1, 1, 1, 1, -1]
    """

    _tasks = ("one-class",)

    offset_ = of_model(lambda self: -self.model_.intercept)

    def fit(self, X: object, y: object = None) -> Self:
        """Train on the rows of `X` (n × d) or of a store; `y` is ignored."""
        if is_stored(X):
            return self._fit(self._stored(X), task="one-class")
        Z = self._validated(X, reset=True)
        return self._fit(MemoryDataset(Z, np.ones(Z.shape[0])), task="one-class")

    def decision_function(self, X: object) -> np.ndarray:
        """How far inside the plane rows of an array, a frame or a store are, float64 (n,); below 0 outside."""
        return self._scores(X)

    def score_samples(self, X: object) -> np.ndarray:
        """⟨w, x⟩, float64 (n,), of the rows of an array or a store."""
        return self._scores(X) + self.offset_

    def predict(self, X: object) -> np.ndarray:
        """1 for rows inside, −1 for those outside, int64 (n,)."""
        return np.where(self._scores(X) > 0.0, 1, -1)
