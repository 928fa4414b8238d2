"""Verbs that use models."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from streamcut.api.verb import verb

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

    from streamcut.certification import Certified
    from streamcut.data.inputs import Raw
    from streamcut.evaluation import Evaluation
    from streamcut.models.model import Model
    from streamcut.reports.page import Report
    from streamcut.reports.weights import Explanation, Weight
    from streamcut.verification import Verification
    from streamcut.weight_errors import StandardErrors


@verb("streamcut.prediction", command="Print labels or scores for rows.")
def predict(
    model: Model | str | os.PathLike,
    data: object,
    *,
    answer: str = "labels",
    ignore_extra_features: bool = False,
    index_base: int | None = None,
    strict: bool = False,
    raw: Raw | None = None,
    memory: str = "auto",
    trained_on: object = None,
) -> Any:
    """The predictions of `model` for all rows of `data`, in their order; `unseen` counts what did not fit the model's recipe.

    model    a model, or the path of its file
    data     an opened data set, the path of a store, of svmlight text or of a table, a frame (any that `convert` takes),
             rows as dicts (one, or a list of them), or X (n × d, NumPy or SciPy sparse); on the command line also -
    answer   "labels": float64 (n,), or words (object, n) where the labels are words; "scores": float64 (n,) or (n, classes);
             "probabilities" of a model that has them: float64 (n,) of the positive label, or (n, classes); "certified":
             CertifiedAnswers: labels, which of them are `proved` to be those of the exact optimum of the model's problem, and
             bounds `low` and `high` on its scores; the smaller the gap (--tol-relative), the more are proved. They are as true
             as the model's lower bound, which `verify` checks. On the command line also both: labels and scores.
    trained_on  with "certified", for a free intercept and scaled features: the training rows, as `verify` takes them
    ignore_extra_features   leave out features that the model does not have, instead of refusing the data
    index_base  number of the first feature in svmlight text; None: that of the training data, else 1
    strict   refuse values that do not fit the recipe, such as categories that training did not see; otherwise they are counted
    raw      further settings for raw input, its index_base included, and what was unusual in it
    memory   "4GB", "50%" or "auto": ceiling on the resident memory of this process. MemoryBudgetError, before any row is scored
             where their number is known, if it cannot be kept

    A store or file may have fewer features than the model (the others are 0); an array must have exactly as many.
    Raw input is prepared by the model's recipe, and needs no labels; a store of another recipe is refused.

    Lines in a shell have 17 significant digits, so that reading them back gives the same numbers. An output that ends in .csv or
    .parquet is a table with a line of names, and so is what --keep makes; cells have their barcodes in it.

    >>> model = streamcut.train("rows.zarr", C=10.0)  # made in the example of `convert`
    >>> streamcut.predict(model, "rows.svm").tolist()
    [1.0, -1.0, 1.0, -1.0]

    In a shell:
      streamcut predict m.npz test.zarr > labels.txt
      streamcut predict m.npz test.zarr --answer certified
      streamcut predict m.npz test.svm.gz --answer scores -o scores.txt
      streamcut predict m.npz new.parquet --keep id --answer both -o out.parquet
      zcat test.svm.gz | streamcut predict m.npz - --answer both
    """


@verb("streamcut.evaluation", command="Measure a model on labelled rows.")
def evaluate(
    model: Model | str | os.PathLike,
    data: object,
    *,
    ignore_extra_features: bool = False,
    index_base: int | None = None,
    label_names: Mapping[float, str] | str | os.PathLike | None = None,
    strict: bool = False,
    raw: Raw | None = None,
    memory: str = "auto",
) -> Evaluation:
    """Measure `model` on labelled `data`.

    model    a model, or the path of its file
    data     what `predict` takes, with labels, or (X, y) or (X, y, row weights); row weights count
    ignore_extra_features, index_base, strict, raw   those of `predict`
    label_names   sequences: {1.0: "B-NP", …} or a file of lines such as `1 B-NP`; adds measures of chunks in the IOB scheme
    memory   "4GB", "50%" or "auto": ceiling on the resident memory of this process: two classes, rankings and the ROC area sort
             the scores of all rows

    Two classes have accuracy, balanced accuracy, ROC AUC (exact), average precision, precision, recall, F1, the four counts and
    the mean hinge loss; with probabilities (logistic, or calibrated) also log loss, Brier score and calibration error; several
    classes macro and micro F1, the mean loss, and precision, recall and F1 of each; rankings swapped pairs (ties half), mean
    average precision and NDCG at 1, 5 and 10. A measure that is not defined on this data is None.

    Raises MemoryBudgetError if `memory` cannot be kept, immediately where the number of rows is known; BadInputError for labels
    or features that the model does not know, and for labels without a name; UsageError for label names where the model labels
    no sequences.

    >>> model = streamcut.train("rows.zarr", C=10.0)  # made in the example of `convert`
    >>> streamcut.evaluate(model, "rows.zarr").accuracy
    1.0

    In a shell:
      streamcut evaluate m.npz test.zarr
      streamcut evaluate m.npz test.svm --json
      streamcut evaluate m.npz later.parquet --missing-labels skip
      streamcut evaluate ranking.npz test.svm --per-query > queries.csv
      streamcut evaluate chunker.npz test.zarr --label-names tags.txt
    """


@verb("streamcut.reports.weights", command="Explain the scores of rows, feature by feature; print weights.")
def explain(
    model: Model | str | os.PathLike,
    data: object,
    *,
    top: int | None = 10,
    label: str | float | None = None,
    against: object = None,
    strict: bool = False,
    raw: Raw | None = None,
) -> list[Explanation]:
    """What each feature adds to the score of each row of `data`, for a linear `model`.

    data     rows as `streamcut.predict` takes them: a frame, one row or several as dicts, a file, a store, X
    top      parts of each explanation; None: all that are not 0
    label    for several classes, the class whose scores are explained, its word or number; None: each row's highest-scoring class
    against  rows whose mean (row weights counted) is the row of comparison, such as those of the training: one pass. None: a row
             of zeros, which has numbers standardised by the recipe at their mean, no category and no word
    strict, raw   of `streamcut.predict`

    Raises UsageError for a model without weights of features and for a label that it does not have, and what `predict` raises.

    >>> model = streamcut.train("rows.zarr", C=10.0)  # made in the example of `convert`
    >>> (first, *_) = streamcut.explain(model, "rows.zarr")
    >>> abs(first.base + sum(part.contribution for part in first.parts) + first.others - first.score) < 1e-12
    True

    In a shell:
      streamcut explain m.npz new.csv --top 5
      streamcut explain m.npz new.parquet --against train.zarr --json > why.jsonl
      streamcut explain m.npz --top 50
      streamcut explain m.npz --standard-errors --trained-on t.zarr --cluster ids
    """


@verb("streamcut.reports.weights")
def weights(
    model: Model | str | os.PathLike, *, top: int | None = None, sort: str = "magnitude", label: str | float | None = None
) -> list[Weight]:
    """The weights of `model` that are not 0, class by class, each with its intercept first.

    top    how many per class, the largest in magnitude; None: all
    sort   "magnitude": the largest first; "weight": from the most positive to the most negative; "feature": by number
    label  for this class only: its word or number

    Raises UsageError for a model without weights of features, and for a label that it does not have.

    >>> model = streamcut.train("rows.zarr", C=10.0)  # made in the example of `convert`
    >>> [weight.feature for weight in streamcut.weights(model, top=1)]
    [None, 2]
    """


@verb("streamcut.weight_errors")
def standard_errors(
    model: Model | str | os.PathLike,
    data: object,
    *,
    robust: bool = False,
    clusters: ArrayLike | None = None,
    memory: str = "auto",
) -> StandardErrors:
    """Standard errors, z and p of the weights of a linear model with loss "logistic", "squared" or "poisson", in one pass.

    data      the rows that it was trained on, as `verify` takes them: a store, the table itself, (X, y) or (X, y, row weights)
    robust    the sandwich instead of the errors that assume the model to be true
    clusters  rows of the same cluster depend on each other: an array (n,) that names the cluster of each row, or "qid", those of
              the data; implies robust
    memory    "4GB", "50%" or "auto": ceiling on the resident memory of this process; clusters take 8 D bytes each

    Raises UsageError for other models, rows that it was not trained on and clusters that do not fit the rows; MemoryBudgetError.
    """


@verb("streamcut.calibration", command="Fit probabilities for a model on validation rows.")
def calibrate(model: Model | str | os.PathLike, data: object, *, memory: str = "auto") -> Model:
    """`model`, of two or several classes, with probabilities fitted on `data`.

    model    a model, or the path of its file
    data     what `evaluate` takes, with labels; not the training rows, whose scores are too extreme: a warning is given where
             the data is known to be the same
    memory   "4GB", "50%" or "auto": ceiling on the resident memory of this process

    Two classes: 1 / (1 + exp(A·score + B)) for the positive label (Platt scaling). Several: proportional to
    exp(scale·score + offset) with an offset for each class.

    Each row takes 128 bytes for two classes; for K, 64 + 64 K. Raises MemoryBudgetError when `memory` is too little, UsageError
    for models of other tasks, BadInputError for labels that the model does not know, and for a single class.

    >>> model = calibrate(streamcut.train("rows.zarr"), "rows.zarr")  # made in the example of `convert`
    >>> (streamcut.predict(model, "rows.zarr", answer="probabilities") > 0.5).tolist()
    [True, False, True, False]

    In a shell:
      streamcut calibrate m.npz validation.zarr
      streamcut predict m.npz test.zarr --answer probabilities
    """


@verb("streamcut.verification", command="Prove or refute a model's certificate, or prove one of any linear model.")
def verify(
    model: Model | str | os.PathLike,
    data: object,
    *,
    max_passes: int = 100,
    memory: str = "auto",
    force: bool = False,
) -> Verification:
    """Prove or refute the certificate of `model` by `data`, the rows that it was trained on: an opened data set, the path of a
    store, of text or of a table, a frame, (X, y) or (X, y, row weights).

    max_passes  at most this many, of a training that starts from the weights where its loss is a sum over rows
    memory   "4GB", "50%" or "auto": ceiling on the resident memory of this process
    force    accept data other than the training data; the certificate then says nothing about it

    A pass computes the objective at the weights. Then training goes on until it ends with an `outcome`: a bound as good as the
    recorded one is proved (reached); weights are found that reach less than the recorded bound, or the record says what the rows
    do not (refuted); or the passes are used up (undecided). Of smo and sampled cuts one pass decides: the rows show their dual
    variables, which are the proof, to be feasible. Calibrated probabilities are not checked, and certificates of sequences cannot
    be.

    Raises UsageError for other data without `force`, for sequences and for models that claim no bound, BadInputError for labels
    or features that the model does not know, and the errors of `train`.

    In a shell:
      streamcut verify m.npz
      streamcut verify m.npz train.zarr --max-passes 300
      streamcut verify liblinear.model train.zarr --C 1
      streamcut verify weights.json train.zarr --C 1 --loss logistic --max-passes 6
    """


@verb("streamcut.certification")
def certify(
    model: Model | BaseEstimator | str | os.PathLike,
    data: object,
    passes: int = 3,
    *,
    C: float | None = None,
    loss: str | None = None,
    intercept: str | float | None = None,
    epsilon: float | None = None,
    memory: str = "auto",
) -> Certified:
    """How far `model` is above the optimum of its problem on `data`: at most and at least, proved by reading the rows.

    model      a fitted estimator of scikit-learn (LogisticRegression, LinearSVC, SGDClassifier, RidgeClassifier, Ridge,
               LinearSVR, SGDRegressor, PoissonRegressor, OneVsRestClassifier of one of them, or a Pipeline of StandardScaler
               or MaxAbsScaler and one of them), a linear model of streamcut, or the path of its file, of LIBLINEAR's text
               or of the JSON of `export`. Several classes are one problem (softmax, Crammer & Singer) or one for each class
               against the rest, which are added up
    data       the rows that it was fitted to: an opened data set, the path of a store, of text or (for a model of ours) of a
               table, a frame, (X, y) or (X, y, row weights)
    passes     over the rows, 1 to 30
    C, loss    of F = ½‖w‖² + C Σ u_i ℓ_i, if the model does not record them; if given, they override it (ours say them)
    epsilon    of the epsilon-insensitive losses, if the model does not record it
    intercept  "free": b costs nothing (not of a joint loss of several classes); "none"; or the value of a bias feature whose
               weight is regularised
    memory     "4GB", "50%" or "auto": ceiling on the resident memory of this process

    Raises UsageError for models that have no such problem or do not record it; BadInputError for data with one label or with
    other features; MemoryBudgetError, and what opening the data raises.
    """


@verb("streamcut.reports.page", command="Write a page (HTML) or plots about a model.")
def report(
    model: Model | str | os.PathLike,
    path: str | os.PathLike | None = None,
    *,
    data: object = None,
    feature_names: str | os.PathLike | None = None,
    plots: str | os.PathLike | None = None,
    force: bool = False,
) -> Report:
    """One HTML page about `model`: its certificate, weights, training and, with `data`, its quality.

    model    a model, or the path of its file
    path     the page (.html) to write
    data     labelled rows to measure the model on, as `evaluate` takes them; read once
    feature_names   a file with the name of each feature on a line of its own, instead of those of the data
    plots    a folder for all plots as SVG and PNG, created if needed; without it and `path` nothing is written
    force    replace `path`, if it exists

    The page needs no other file and no network; the numbers are in it as JSON, too. Needs matplotlib: streamcut[plots].

    The result has `html()`, `figures()`, `write` and `write_plots`. Raises UsageError for a page that exists, NotFoundError.

    In a shell:
      streamcut report m.npz -o m.html
      streamcut report m.npz -o m.html --data test.zarr --feature-names words.txt
      streamcut report m.npz --plots figures
    """


@verb("streamcut.exports.export", command="Write a model in the format of another program.")
def export(
    model: Model | str | os.PathLike,
    path: str | os.PathLike,
    *,
    to: str | None = None,
    replace: bool = True,
    without_recipe: bool = False,
    without_probabilities: bool = False,
) -> None:
    """Write `model` to `path` for another program, which then gives the same labels and scores.

    model    a model, or the path of its file
    to       the program to write for: sklearn, onnx, json, liblinear …; by default as the file's name ends, else liblinear
    replace  replace the file if it exists
    without_recipe         leave out how raw rows become features, and words for labels, if the program cannot hold them
    without_probabilities  leave out the probabilities of the model

    What the program cannot hold is refused, not left out silently.

    Raises UsageError for an unknown program, for a model that it cannot hold and, unless `replace`, if the file exists;
    DiskFullError.

    In a shell:
      streamcut export m.npz m.liblinear
      streamcut export m.npz m.onnx
    """
