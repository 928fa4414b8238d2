"""What the estimators of streamcut.sklearn have in common: parameters from options, rows from arrays, frames and stores, and
what a fitted one has.
"""

from __future__ import annotations

import os
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import replace
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, cast

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data

from streamcut.config import COMMON, EXACT_KERNEL, OPTIONS, TrainOptions, of_other_kernels
from streamcut.errors import UsageError
from streamcut.evaluation import Evaluation, evaluate
from streamcut.exports.sklearn import learned
from streamcut.foundation.interrupts import first_interrupt_asks
from streamcut.io.dataset import Dataset, is_dataset
from streamcut.io.memory import MemoryDataset
from streamcut.io.recipe.recipe import LabelRule
from streamcut.io.sources.lazy import is_frame
from streamcut.loss_table import ROW_LOSSES
from streamcut.models.kernel import KernelModel, joined, row_keys
from streamcut.models.model import Model
from streamcut.prediction import predict
from streamcut.progress import shown_by
from streamcut.solver_table import SOLVER_TABLE, solvers_of
from streamcut.training import Session, checked, opened, train

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from streamcut.exports.sklearn import TableEncoder

_NOT_HERE = {"task", "positive_label", "positive_weight", "validation"}  # classes, class_weight and `score` are in their place
_TEXTS = {
    "gamma": 'γ; "scale" is 1 / (features × variance of all values), "auto" 1 / features.',
    "warm_start": "True: `fit` starts from the present weights, say those of another C. Or a model to start from, or its path.",
    "task": '"sequence": the rows of one group are labelled together, as they are when `fit` gets groups; else "auto".',
    "class_weight": 'Factors on the rows of classes, for arrays: a dict, "balanced" or None.',
    "recipe": 'How rows of frames become features: "auto" as `streamcut.fit` makes them of columns (numbers standardised, '
    "categories, texts, times, missing values), or a dict of further options of `streamcut.convert`; None: all are numbers.",
    "verbose": "Show progress: lines, and a bar on a terminal.",
}
_THEIRS = {"squared-error": "squared", "pinball": "quantile", "log-loss": "logistic"}  # losses as scikit-learn names them
_OF_LOSSES = {name for loss in ROW_LOSSES.values() for name in loss.options}
_RESULTS = {"primal": "primal_objective_", "lower_bound": "lower_bound_", "gap": "gap_"}


Matrix: TypeAlias = np.ndarray | csr_array


def is_stored(X: object) -> bool:
    """Whether `X` is the path of a store or an opened data set, which brings its own labels."""
    return isinstance(X, str | os.PathLike) or is_dataset(X)


def of_model(value: Callable[[Estimator], Any]) -> property:
    """An attribute of fitted estimators that comes from their model: it cannot be set, nor can its arrays be changed in place."""

    def get(estimator: Estimator) -> np.ndarray | csr_array | float:
        array = value(estimator)
        sparse, dense = issparse(array), isinstance(array, np.ndarray)
        array = array.copy() if sparse else array.view() if dense else array
        for part in (array.data, array.indices, array.indptr) if sparse else (array,) if dense else ():
            part.flags.writeable = False
        return array

    return property(get)


def _of_features(estimator: Estimator) -> bool:
    """Whether there are weights of features, as far as parameters tell."""
    return estimator.kernel == "linear"


def _weights(estimator: Estimator) -> Matrix:
    model = estimator.model_
    if not (model.of_features or (isinstance(model, KernelModel) and model.kernel.name == "linear")):
        raise AttributeError("coef_ is of linear kernels: there are no weights of features")
    weights = model.support.T @ model.coefficients if isinstance(model, KernelModel) else model.weights
    weights = np.atleast_2d(weights.T) if isinstance(estimator, ClassifierMixin) else weights
    return csr_array(np.atleast_2d(weights)) if vars(estimator).get("_sparse") else weights


def _intercept(estimator: Estimator) -> np.ndarray | float:
    value = estimator.model_.intercept
    return np.atleast_1d(np.float64(value)) if isinstance(estimator, ClassifierMixin) else float(value)


class Estimator(BaseEstimator):
    """What the estimators have in common.

    Attributes
    ----------
    coef_, intercept_ : weights of the features, of linear kernels, and what is added
    support_, n_support_ : of kernel machines on arrays: which rows are support vectors, and how many of each class
    support_vectors_, dual_coef_, gamma_ : of kernel machines: the vectors as a sparse array, their coefficients, γ
    primal_objective_, lower_bound_, gap_ : the certificate, where the solver has one; of smo on several classes one for each
    n_iter_, converged_, history_ : iterations or epochs, whether the tolerance was reached, a dict for each iteration
    model_ : the model, for `streamcut.save_model`; with a recipe it takes rows as `fit` took them
    encoder_ : with a recipe: makes features of rows; `encoder_.recipe.names` are their names
    """

    _tasks: ClassVar[tuple[str, ...]] = ()
    _usual: ClassVar[dict[str, object]] = {"gamma": "scale", "warm_start": False, "recipe": None, "verbose": False}
    if TYPE_CHECKING:  # parameters, and what fit sets
        model_: Any
        encoder_: TableEncoder | None
        _support: np.ndarray
        _n_support: np.ndarray

        def __getattr__(self, name: str) -> Any: ...

    coef_ = of_model(_weights)
    intercept_ = of_model(_intercept)
    support_vectors_ = of_model(lambda self: self.model_.support)
    support_ = of_model(lambda self: self._support)
    n_support_ = of_model(lambda self: self._n_support)
    dual_coef_ = of_model(lambda self: np.atleast_2d(self.model_.coefficients.T))
    gamma_ = of_model(lambda self: self.model_.kernel.gamma)

    def __init_subclass__(cls) -> None:
        """A constructor with the options that some solver has for the tasks of `cls`, and a docstring that lists them."""
        solvers = [SOLVER_TABLE[name].options for name in solvers_of(cls._tasks[0])]
        usual = {name: value for kind in reversed(cls.__mro__) for name, value in vars(kind).get("_usual", {}).items()}
        defaults = {
            name: TrainOptions.__dataclass_fields__[name].default
            for name, option in OPTIONS.items()
            if name not in _NOT_HERE
            and (option.tasks is None or set(option.tasks) & set(cls._tasks))
            and (name in {*COMMON, "seed"} or any(name in options for options in solvers))  # feature maps draw, too
        }
        defaults |= {name: value for name, value in usual.items() if name in defaults or name not in OPTIONS or name == "task"}

        def __init__(self: Any, **parameters: object) -> None:  # noqa: N807
            if unknown := sorted(parameters.keys() - defaults.keys()):
                raise TypeError(f"{type(self).__name__} has no parameter {unknown[0]!r}; help({type(self).__name__}) lists them")
            for name, value in (defaults | parameters).items():
                setattr(self, name, value)

        keywords = [Parameter(name, Parameter.KEYWORD_ONLY, default=value) for name, value in defaults.items()]
        __init__.__signature__ = Signature([Parameter("self", Parameter.POSITIONAL_OR_KEYWORD), *keywords])  # type: ignore[attr-defined]
        __init__.__module__, __init__.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
        cls.__init__ = __init__  # type: ignore[method-assign]
        if cls.__doc__:  # python -OO has none
            text, head, examples = textwrap.dedent("    " + cls.__doc__).partition("\n\nExamples\n")
            entries = "\n".join(_entry(name, value) for name, value in defaults.items())
            shared = textwrap.dedent("    " + (Estimator.__doc__ or "")).partition("\n\n")[2].rstrip()
            cls.__doc__ = f"{text.rstrip()}\n\nParameters\n----------\n{entries}\n\n{shared}\n{head}{examples}"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @available_if(_of_features)
    def sparsify(self) -> Self:
        """`coef_` becomes a sparse array, after `l1` or `l1_only`; `densify` undoes it. Predictions stay the same."""
        check_is_fitted(self, "model_")
        self._sparse = True
        return self

    @available_if(_of_features)
    def densify(self) -> Self:
        """`coef_` becomes a NumPy array again."""
        self._sparse = False
        return self

    def _scores(self, X: object) -> np.ndarray:
        """Scores, float64 (n,) or (n, classes), of the rows of an array, a frame or a store."""
        check_is_fitted(self, "model_")
        if is_stored(X):
            return np.asarray(predict(self.model_, X, answer="scores"))
        return self.model_.decision_function(self._validated(X, reset=False))

    def evaluate(self, X: object) -> Evaluation:
        """All measures of `streamcut.evaluate` on a store or a file in svmlight format, whose labels are numbers."""
        check_is_fitted(self, "model_")
        self._expect_numbers()
        return evaluate(self.model_, X)

    @property
    def _classes(self) -> np.ndarray:
        """The classes, of which others than classifiers have none."""
        return self.classes_ if isinstance(self, ClassifierMixin) else np.empty(0)

    def _has_words(self) -> bool:
        """Whether there are classes and they are no numbers."""
        return isinstance(self, ClassifierMixin) and not np.array_equal(self.classes_, self._labels)

    # --- training ---------------------------------------------------------------------------------------------------------------

    def _options(self, data: Dataset, **decided: str | float) -> dict[str, Any]:
        """The options of `train`: the parameters, but for those that the kernel, the loss or the solver does not use."""
        options = {name: spelled(name, value) for name, value in self.get_params(deep=False).items() if name in OPTIONS}
        options |= decided
        if isinstance(start := options.get("warm_start"), bool | np.bool_):
            start = vars(self).get("model_") if start else None
            if start is not None and not np.array_equal(self._fitted_classes, self._classes):
                raise UsageError(
                    f"warm_start: the present weights are of classes {self._fitted_classes.tolist()[:5]}, and the data has "
                    f"{self.classes_.tolist()[:5]}; fit a new estimator"
                )
            options["warm_start"] = replace(start, recipe=None) if start is not None and self.encoder_ is not None else start
        loss = ROW_LOSSES.get(options.get("loss", "auto"))
        unused = {*of_other_kernels(options["kernel"]), *(() if loss is None else _OF_LOSSES - {*loss.options})}
        options = {name: value for name, value in options.items() if name not in unused}
        if "gamma" in options:
            n_features = data.manifest.statistics.n_features
            if isinstance(gamma := options["gamma"], str):
                if gamma not in ("scale", "auto"):
                    raise UsageError(f"gamma: {gamma!r} is neither a number above 0 nor 'scale' or 'auto'")
                options["gamma"] = "auto" if gamma == "scale" else 1.0 / n_features
        seed = options.pop("seed", 0)
        return {**options, "seed": seed} if checked(options)[0].has("seed") else options

    def _fit(self, data: Dataset, **decided: str | float) -> Self:
        apart = decided["task"] == "multiclass" and self.solver in EXACT_KERNEL
        if apart:
            decided |= {"task": "binary", "positive_label": float(self._labels[0]), "strategy": "crammer-singer"}
        options = self._options(data, **decided)
        models = self._train_each(data, options) if apart else [train(data, **options, progress=bool(self.verbose))]
        self.model_ = model = joined(cast(list[KernelModel], models), tuple(self._labels.tolist())) if apart else models[0]
        if self.encoder_ is not None:  # the model keeps the columns, too
            words = tuple(zip(map(str, self.classes_), self._labels.tolist(), strict=True)) if self._has_words() else ()
            self.model_ = replace(model, recipe=replace(self.encoder_.recipe, labels=LabelRule(words=words, none=True)))
        self._sparse, self._fitted_classes = False, self._classes
        for name in ("_support", "_n_support", *_RESULTS.values()):
            self.__dict__.pop(name, None)
        self.history_, self.converged_ = model.history, model.converged
        self.n_iter_ = max(1, model.history[-1].get("iteration", len(model.history)) if model.history else 1)
        for name, attribute in _RESULTS.items():
            results = [fitted.result().get(name) for fitted in models]
            if None not in results:
                setattr(self, attribute, np.array(results) if apart else results[0])
        if not model.converged:
            text = f"not converged ({model.stop_reason}): {model.in_words()}"
            warnings.warn(text, ConvergenceWarning, stacklevel=3)
        return self

    def _train_each(self, data: Dataset, options: dict[str, Any]) -> list[Model]:
        """Each class against the rest by an exact kernel solver: problems that share kernel columns."""
        from streamcut.jobs.exact_kernel import ExactKernelJob

        with shown_by(bool(self.verbose)) as display, first_interrupt_asks() as asked:
            chosen, scheduler = checked(options)
            run = Session(data, chosen, scheduler=scheduler, stop=asked, display=display)
            assert isinstance(run.job, ExactKernelJob)
            run.job = job = replace(run.job, sharing=True)
            with run:
                return run.all_finished(lambda: job.solve_each(run.runner, lambda: run.progress(None), run.plan))

    def _with_support(self, X: Matrix, classes: np.ndarray) -> Self:
        """Find the support vectors among the rows of `X`, whose classes are 0, 1, …. Merged vectors are none of them."""
        if not isinstance(self.model_, KernelModel):
            return self
        rows, vectors = (csr_array(part, dtype=np.float64, copy=True) for part in (X, self.model_.support))
        for part in (rows, vectors):
            part.sum_duplicates()
            part.eliminate_zeros()
        waiting = dict[tuple[bytes, bytes], list[int]]()
        for place, key in enumerate(row_keys(vectors)):
            waiting.setdefault(key, []).append(place)
        support = np.full(len(vectors.indptr) - 1, -1)
        for number, key in enumerate(row_keys(rows)):
            if waiting.get(key):  # equal ones in turn
                support[waiting[key].pop(0)] = number
        if (support >= 0).all():
            self._support, self._n_support = support, np.bincount(classes[support], minlength=classes.max() + 1)
        return self

    # --- rows -------------------------------------------------------------------------------------------------------------------

    def _rows(
        self, X: object, y: object, sample_weight: object, *, numeric: bool, reset: bool = True
    ) -> tuple[Matrix, np.ndarray, np.ndarray | None]:
        """(features, labels, row weights or None) of arrays or frames, validated."""
        Z, labels = self._validated(X, y, y_numeric=numeric, reset=reset)
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, Z, dtype=np.float64, ensure_non_negative=True)
        return Z, labels, weight

    def _stored(self, X: object, **extra: object) -> Dataset:
        """The store `X`, to which nothing can be added."""
        if too_much := [name for name, value in extra.items() if value is not None]:
            raise UsageError(f"a store has its own {', '.join(too_much)}: leave the argument out")
        if self.recipe is not None:
            raise UsageError("recipe: a store has its features already; leave it out")
        data = opened(X)
        self.n_features_in_, self.encoder_ = data.manifest.statistics.n_features, None
        self.__dict__.pop("feature_names_in_", None)
        names = None if data.recipe is None else data.recipe.names
        if names is not None and len(names) == self.n_features_in_:
            self.feature_names_in_ = np.array(names, dtype=object)
        return data

    def _expect_numbers(self) -> None:
        """Labels of stores are numbers, and so the classes must be."""
        if self._has_words():
            raise UsageError(f"labels of stores are numbers, but the classes are {self.classes_[:5].tolist()}; give arrays")

    def _validated(self, X: object, *y: object, reset: bool, **checks: object) -> Any:
        """`X`, or (X, y), validated by scikit-learn, after rows of frames became features by the recipe."""
        features = X
        if reset:
            self.encoder_ = None
            if self.recipe is not None:
                if self.recipe != "auto" and not isinstance(self.recipe, dict):
                    raise UsageError(f'recipe: {self.recipe!r} is neither "auto" nor a dict of options of `streamcut.convert`')
                self.encoder_, features = learned(X, {} if self.recipe == "auto" else self.recipe)
        elif self.encoder_ is not None:
            features = self.encoder_.transform(X)
        checks |= {"accept_sparse": "csr", "dtype": (np.float64, np.float32), "accept_large_sparse": True}
        try:
            return validate_data(self, features, *y, reset=reset, **checks)
        except ValueError as error:
            if features is not X or not is_frame(X) or self.recipe is not None:
                raise
            raise ValueError(f'{error}\nrecipe="auto" takes frames with categories and missing values') from error


def _entry(name: str, value: object) -> str:
    """An entry of a docstring: "C : default=1.0", and under it, indented, what it is."""
    option = OPTIONS.get(name)
    text = _TEXTS[name] if option is None or name in _TEXTS else option.in_python()
    choices = ", ".join(f'"{choice}"' for choice in option.choices) if option is not None and name != "task" else ""
    head = f"{name} : {f'{{{choices}}}, ' if choices else ''}default={value!r}"
    return "\n".join([head, *textwrap.wrap(text, 116, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)])


def spelled(name: str, value: Any) -> Any:
    """A word as `train` has it: squared_hinge is squared-hinge."""
    if name == "loss" and isinstance(value, str):
        value = _THEIRS.get(value.replace("_", "-"), value)
    other = value.replace("_", "-") if isinstance(value, str) else value
    return other if other in OPTIONS[name].choices else value


def grouped(X: Matrix, y: np.ndarray, weight: np.ndarray | None, groups: ArrayLike | None) -> MemoryDataset:
    """The rows, grouped, otherwise in their order. `groups` (n) may hold anything that can be sorted."""
    if groups is None:
        return MemoryDataset(X, y, weight=weight)
    groups = column_or_1d(groups)
    check_consistent_length(X, groups)
    qid = np.unique(groups, return_inverse=True)[1]
    order = np.argsort(qid, kind="stable")
    return MemoryDataset(X[order], y[order], weight=None if weight is None else weight[order], qid=qid[order])
