"""What the scikit-learn estimators share: rows from arrays or stores, options, and fitted attributes."""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data

from streamcut.calibration import calibrate
from streamcut.data.inputs import is_frame
from streamcut.errors import BadInputError, UsageError
from streamcut.estimators.declared import USUAL, attribute, declared, parameter
from streamcut.estimators.names import in_our_names, named
from streamcut.evaluation import Evaluation, evaluate
from streamcut.exports.table_encoder import learned
from streamcut.foundation.machine import available_cpus
from streamcut.foundation.shown import unknown
from streamcut.foundation.units import plain
from streamcut.io.dataset import Dataset
from streamcut.io.memory import MemoryDataset
from streamcut.io.recipe.recipe import LabelRule
from streamcut.models.model import Model
from streamcut.prediction import predict
from streamcut.training import checked, opened, train

DTYPES = (np.float64, np.float32)
RESULTS = {"primal": "primal_objective_", "lower_bound": "lower_bound_", "gap": "gap_"}


def is_stored(X: Any) -> bool:
    """Whether `X` is the path of a store or an opened data set, which brings its own labels."""
    return isinstance(X, str | os.PathLike) or hasattr(X, "manifest")


@declared
class StreamedEstimator(BaseEstimator):
    """Trains on arrays (NumPy, SciPy sparse) or on a store: `fit("train.zarr")`."""

    max_time: float | None = parameter(default=USUAL.max_time)
    memory: str = parameter(default=USUAL.memory)
    n_jobs: int | None = parameter(
        "Threads; None or −1: one per processor, if there is enough work; −2: one processor less.", default=None
    )
    recipe: Any = parameter(
        'How rows of frames become features: "auto" as `streamcut.fit` makes them of columns (numbers standardised, categories, '
        "texts, times, missing values), or a dict of further options of `streamcut.convert`; None: all columns are numbers.",
        default=None,
        kind='"auto", dict or None',
        option=False,
    )
    scratch: str | None = parameter(default=USUAL.scratch)
    verbose: bool | int = parameter("Show progress: lines, and a bar on a terminal.", default=False, option=False)
    n_iter_: int = attribute("int", "Iterations, or epochs, that training took.")
    converged_: bool = attribute("bool", "Whether training reached its tolerance.")
    history_: list[dict[str, Any]] = attribute("list of dict", "What training measured, one dict per iteration.")
    model_: Model = attribute("Model", "What `streamcut.save_model` writes; with a recipe it takes rows as `fit` took them.")
    encoder_: Any = attribute(
        "TableEncoder or None", "With a recipe: makes features of rows. `encoder_.recipe.names` are their names."
    )

    _fixed: ClassVar[dict[str, Any]] = {}
    _solvers: ClassVar[tuple[str, ...]]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _options(self) -> dict[str, Any]:
        given = {each.name: getattr(self, each.name) for each in fields(self) if each.metadata.get("option")}
        chosen = {name: plain(value) for name, value in given.items()}
        if chosen["solver"] not in self._solvers:
            raise UsageError(f"solver of {type(self).__name__}: {unknown(chosen['solver'], self._solvers)}")
        if "fit_intercept" in chosen:
            scaling = float(chosen.pop("intercept_scaling", 1.0))
            if chosen["fit_intercept"] and not scaling > 0.0:
                raise UsageError(f"intercept_scaling: {scaling:g} is not above 0; fit_intercept=False leaves the intercept out")
            chosen["bias"] = scaling if chosen.pop("fit_intercept") else 0.0
            if chosen["bias"] and not getattr(self, "intercept_penalty", True):
                chosen["intercept"] = "free"
        jobs = chosen.pop("n_jobs")
        chosen["workers"] = max(1, available_cpus() + 1 + jobs) if isinstance(jobs, int) and jobs < 0 else jobs
        most = chosen.pop("max_iter", None)
        chosen |= {} if most in (None, -1) else {"max_passes": most}
        return {**chosen, **self._fixed}

    def _asked(self, data: Any, **given: Any) -> dict[str, Any]:
        """Options of `train` on `data`: the parameters, and `given`. A seed is one where something is drawn."""
        asked = {**self._options(), **given}
        if "random_state" in asked:
            seed = asked.pop("random_state")
            if checked(asked)[0].has("seed"):
                asked["seed"] = seed if isinstance(seed, int) else int(check_random_state(seed).randint(2**31 - 1))
        return asked

    def _train(self, data: Any, **given: Any) -> Any:
        """`streamcut.train` with the parameters as options; its refusals use the estimator's names."""
        with named(self):
            model = train(data, **self._asked(data, **given), progress=bool(self.verbose))
        if self.verbose:  # progress is logged now and then, this line always
            print(model.in_words(), file=sys.stderr)
        return model

    def _keep(self, model: Model, *, warn: bool = True) -> Self:
        """Set the public attributes from `model`; `warn` if it did not converge."""
        self.model_ = model
        if self.encoder_ is not None:  # the model keeps the columns, too
            words = tuple(zip(map(str, self.classes_), self._labels.tolist(), strict=True)) if _are_words(self) else ()
            self.model_ = replace(model, recipe=replace(self.encoder_.recipe, labels=LabelRule(words=words, none=True)))
        self.history_ = model.history
        self.n_iter_ = max(1, model.history[-1].get("iteration", len(model.history)) if model.history else 1)
        self.converged_ = model.converged
        result = model.result()
        for name, ours in RESULTS.items():
            if name in result:
                setattr(self, ours, result[name])
        if warn and not model.converged:
            text = in_our_names(self, model.in_words())
            warnings.warn(f"not converged ({model.stop_reason}): {text}", ConvergenceWarning, stacklevel=3)
        return self

    def _arrays(
        self, X: Any, y: Any, sample_weight: Any = None, *, numeric: bool, reset: bool = True
    ) -> tuple[Any, np.ndarray, np.ndarray | None]:
        X, y = self._validated(X, y, y_numeric=numeric, reset=reset)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return X, y, sample_weight

    def _stored(self, X: Any, *, reset: bool = True, **given: Any) -> Dataset:
        """The store `X`, to which nothing can be added."""
        too_much = [name for name, value in given.items() if value is not None]
        if too_much:
            raise UsageError(f"a store has its own {', '.join(too_much)}: leave the argument out")
        if reset and self.recipe is not None:
            raise UsageError("recipe: a store has its features already; leave it out")
        data = opened(X)
        n_features = data.manifest.statistics.n_features
        if reset:
            self.n_features_in_, self.encoder_ = n_features, None
            names = None if data.recipe is None else data.recipe.names
            if names is not None and len(names) == n_features:
                self.feature_names_in_ = np.array(names, dtype=object)
        elif n_features != self.n_features_in_:
            raise self._other_width(n_features)
        return data

    def evaluate(self, X: Any) -> Evaluation:
        """All measures of `streamcut.evaluate` on a store or a file in svmlight format."""
        check_is_fitted(self, "model_")
        return evaluate(self.model_, self._narrow(X))

    def _narrow(self, X: Any) -> Any:
        """The stored rows `X`; a store may have fewer features than fit saw, not more."""
        if hasattr(X, "manifest") or os.path.isdir(X):
            X = opened(X)
            n_features = X.manifest.statistics.n_features
            if n_features > self.n_features_in_:
                raise self._other_width(n_features)
        return X

    def _other_width(self, n_features: int) -> ValueError:
        return ValueError(
            f"the store has {n_features:,} features, but {type(self).__name__} is expecting {self.n_features_in_:,} features; "
            f"convert the data with n_features={self.n_features_in_}"
        )

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "model_")
        if is_stored(X):
            return np.asarray(predict(self.model_, self._narrow(X), answer="scores"))
        return self.model_.decision_function(self._checked(X))

    def _checked(self, X: Any) -> Any:
        """The rows, checked to have the features that fit saw."""
        return self._validated(X, reset=False)

    def _validated(self, X: Any, *y: Any, reset: bool, **checks: Any) -> Any:
        """`X`, or (X, y), validated by scikit-learn, after rows of frames became features."""
        made = self._features(X, reset)
        try:
            return validate_data(
                self, made, *y, accept_sparse="csr", dtype=DTYPES, reset=reset, accept_large_sparse=True, **checks
            )
        except ValueError as error:
            if made is not X or not is_frame(X) or self.recipe is not None:
                raise
            raise ValueError(f'{error}\nrecipe="auto" takes frames with categories and missing values') from error

    def _features(self, X: Any, reset: bool) -> Any:
        """The features of a frame by the requested recipe, which is made from the first rows seen."""
        if not reset:
            return X if self.encoder_ is None else self.encoder_.transform(X)
        self.encoder_ = None
        if self.recipe is None:
            return X
        if self.recipe != "auto" and not isinstance(self.recipe, dict):
            raise UsageError(f'recipe: {self.recipe!r} is neither "auto" nor a dict of options of `streamcut.convert`')
        self.encoder_, made = learned(X, {} if self.recipe == "auto" else self.recipe)
        return made

    def _start(self) -> Any:
        """The fitted model, in the form from which training with features continues; None: there is none."""
        model = getattr(self, "model_", None)
        return replace(model, recipe=None) if model is not None and self.encoder_ is not None else model


@declared
class StreamedClassifier(ClassifierMixin, StreamedEstimator):
    """A classifier: labels of any kind."""

    classes_: np.ndarray = attribute("ndarray", "The classes, in order.")
    class_weight = None  # a parameter if rows have weights

    def _classification(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> tuple[Dataset, bool]:
        """(the data; whether there are more than two classes); sets classes_."""
        if is_stored(X):
            data = self._stored(X, y=y, sample_weight=sample_weight, groups=groups, class_weight=self.class_weight)
            self.classes_ = self._labels = _labels_of(data)
            return data, len(self.classes_) > 2
        X, y, sample_weight = self._arrays(X, y, sample_weight, numeric=False)
        self.classes_ = _classes_of(y)
        self._labels = _numbers(self.classes_)
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise ValueError(f"{type(self).__name__} needs two classes or more, but the data has one class only: {only!r}")
        weight = self._weighted(y, sample_weight)
        if weight is not None:
            counted = np.unique(y[weight > 0])
            if len(counted) < 2:
                raise ValueError(f"{type(self).__name__} needs two classes or more with weights above 0")
            if len(counted) < len(self.classes_):
                which = np.setdiff1d(self.classes_, counted).tolist()[0]
                raise BadInputError(
                    f"all rows of class {which!r} have weight 0: there is nothing to learn of it; change its class_weight or "
                    "sample_weight, or leave its rows out"
                )
        return grouped(X, self._codes(y), weight, groups), len(self.classes_) > 2

    def _codes(self, y: np.ndarray) -> np.ndarray:
        """The numeric labels, float64 (n,), of the classes `y` (n,)."""
        places = np.searchsorted(self.classes_, y)
        if not np.array_equal(self.classes_.take(places, mode="clip"), y):
            unknown = sorted(set(np.unique(y).tolist()) - set(self.classes_.tolist()))
            raise ValueError(
                f"there are labels that fit did not see: {unknown[:5]}; the classes are {self.classes_[:10].tolist()}"
            )
        return self._labels[places]

    def _weighted(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray | None:
        """Row weights times class weights. "balanced": a row of weight 2 counts as two rows, one of weight 0 as none."""
        if self.class_weight is None:
            return weight
        places = np.searchsorted(self.classes_, y)
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            sums = np.bincount(places, weight, len(self.classes_)).astype(float)
            factors = np.divide(sums.sum(), np.count_nonzero(sums) * sums, out=np.zeros(len(sums)), where=sums > 0.0)[places]
        else:
            factors = compute_class_weight(self.class_weight, classes=self.classes_, y=y)[places]
        return factors if weight is None else weight * factors

    def evaluate(self, X: Any) -> Evaluation:
        """All measures of `streamcut.evaluate` on a store or a file in svmlight format, whose labels are numbers."""
        check_is_fitted(self, "model_")
        self._need_numbers()
        return super().evaluate(X)

    def _need_numbers(self) -> None:
        if not np.array_equal(self.classes_, self._labels):
            raise UsageError(f"labels of stores are numbers, but the classes are {self.classes_[:5].tolist()}; give arrays")

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean accuracy on an array with labels, or on a store."""
        if is_stored(X):
            return float(self.evaluate(X).accuracy)
        return super().score(X, y, sample_weight)


def _probable(estimator: Any) -> bool:
    """Whether a classifier has probabilities, or will have them once it is fitted."""
    model = getattr(estimator, "model_", None)
    return estimator._has_probabilities() if model is None else model.has_probabilities


@declared
class ScoringClassifier(StreamedClassifier):
    """A classifier whose scores decide row by row; probabilities once `calibrate` has been called."""

    C: float = parameter("Weight of the loss, as in scikit-learn: larger values regularise less.", default=1.0, kw_only=False)
    class_weight: Any = parameter(
        "Factors on the rows of classes, for arrays.", default=None, kind='dict, "balanced" or None', option=False
    )

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores, float64 (n,) for two classes or (n, classes), of the rows of an array or a store."""
        return self._scores(X)

    def predict(self, X: Any) -> np.ndarray:
        """The classes of the rows of an array or a store."""
        labels = self.model_.labels_of(self.decision_function(X)) if hasattr(self, "model_") else self._scores(X)
        return self.classes_[np.searchsorted(self._labels, labels)]

    def calibrate(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit probabilities on held-out rows, arrays or a store: Platt's for two classes, else a softmax of scores."""
        check_is_fitted(self, "model_")
        if is_stored(X):
            self._need_numbers()
            self.model_ = calibrate(self.model_, self._narrow(X))
            return self
        X, y, weight = self._arrays(X, y, sample_weight, numeric=False, reset=False)
        self.model_ = calibrate(self.model_, MemoryDataset(X, self._codes(y), weight=weight))
        return self

    def _has_probabilities(self) -> bool:
        """Whether `fit` gives probabilities, as far as the parameters tell."""
        return False

    @available_if(_probable)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, float64 (n, K); only for losses that imply them, and after `calibrate`."""
        check_is_fitted(self, "model_")
        found = self.model_.probabilities_of(self.decision_function(X))
        return found if found.ndim == 2 else np.column_stack([1.0 - found, found])

    @available_if(_probable)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of `predict_proba`; −∞ where a probability is too small for a number."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


def _classes_of(y: np.ndarray) -> np.ndarray:
    """The distinct labels of `y` (n) in order. Raises ValueError for what looks like regression targets."""
    if y.dtype.kind not in "biuU":  # fractional numbers, and objects of any kind
        check_classification_targets(y)
    return np.unique(y)


def _are_words(estimator: Any) -> bool:
    """Whether there are classes and they are texts."""
    return getattr(estimator, "classes_", np.zeros(0)).dtype.kind in "OUS" and hasattr(estimator, "_labels")


def _numbers(classes: np.ndarray) -> np.ndarray:
    """Numeric labels of the classes (n,), float64 in the same order: the classes if they are numbers, else 0, 1, …"""
    if classes.dtype.kind in "biuf" and len(np.unique(found := classes.astype(np.float64))) == len(classes):
        return found
    return np.arange(len(classes), dtype=np.float64)


def _labels_of(data: Dataset) -> np.ndarray:
    """The labels of a store, in ascending order."""
    labels = data.manifest.statistics.labels
    if labels is None:
        raise UsageError("the store has too many different labels for classes")
    return np.array(sorted(labels))


def grouped(X: Any, y: np.ndarray, weight: np.ndarray | None, groups: Any) -> MemoryDataset:
    """The rows, grouped, otherwise in their order. `groups` (n) may hold anything that can be sorted."""
    if groups is None:
        return MemoryDataset(X, y, weight=weight)
    groups = column_or_1d(groups)
    check_consistent_length(X, groups)
    _, qid = np.unique(groups, return_inverse=True)
    order = np.argsort(qid, kind="stable")
    return MemoryDataset(X[order], y[order], weight=None if weight is None else weight[order], qid=qid[order])
