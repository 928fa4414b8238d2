"""Every verb of streamcut: what it takes and what it does, in Python and in a shell.

The signatures and texts stand here alone; `streamcut.NAME` is the function of that name, the command line makes its commands of
them (streamcut.cli.made), and so do the stub and the reference. Importing this module imports no library: a verb's own module is
imported when it runs. A line `name   text` says what a parameter is; what follows "In a shell:" are examples.
"""


# mypy: disable-error-code="empty-body"

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from streamcut.config import CheckpointOptions, TrainOptions
from streamcut.io.conversion.options import ConvertOptions
from streamcut.options.option import documented

if TYPE_CHECKING:
    from streamcut.certifying.record import Certified
    from streamcut.cross_validation import CrossValidated
    from streamcut.data.inputs import Raw
    from streamcut.evaluation import Evaluation
    from streamcut.execution.plan import MemoryPlan
    from streamcut.fitting.fitted import Fitted
    from streamcut.grids.selection import Tried
    from streamcut.io.conversion.convert import ConvertReport
    from streamcut.io.conversion.progress import Progress
    from streamcut.io.recipe.recipe import Recipe
    from streamcut.models.model import Model
    from streamcut.progress.display import Display
    from streamcut.proofs.claims import Verification
    from streamcut.reports.explained import Explanation
    from streamcut.reports.named_weights import Weight
    from streamcut.reports.page import Report
    from streamcut.solvers.progress import Observer
    from streamcut.tuning import Tuned
    from streamcut.weight_errors import StandardErrors

_Verb = TypeVar("_Verb", bound=Callable)
VERBS: dict[str, Callable] = {}


def verb(home: str, options: Any = None) -> Callable[[_Verb], _Verb]:
    """A decorator: the function is that of the same name in the module `home`; `options` is the record of its **options."""

    def declared(function: Any) -> Any:
        if options is not None:
            function = documented(options)(function)

        @wraps(function)
        def run(*arguments: Any, **named: Any) -> Any:
            return getattr(import_module(home), function.__name__)(*arguments, **named)

        run.home, run.options = home, options  # type: ignore[attr-defined]
        VERBS[function.__name__] = run
        return run

    return declared


@verb("streamcut.fitting.fit", TrainOptions)
def fit(
    data: Any,
    label: str | None = None,
    *,
    validation: str | float = "20%",
    group_column: str | None = None,
    time_column: str | None = None,
    store: str | os.PathLike | None = None,
    convert: Mapping[str, Any] | None = None,
    C: float | Sequence[float] | None = None,
    measure: str | None = None,
    on_told: Callable[[str], None] | None = None,
    on_iteration: Observer | None = None,
    checkpoint: CheckpointOptions | str | None = None,
    stop: Callable[[], bool] | None = None,
    **options: Any,
) -> Fitted:
    """Make features of `data`, choose C on held-out rows, train on all rows, and report how good the model is.

    data         a file, folder or glob of CSV, Parquet, JSON lines, Arrow or svmlight; a folder of documents; cells (.h5ad); a
                 frame (pandas, polars, Arrow, DuckDB), rows as dicts; a store, or its path; (X, y) or (X, y, row weights)
    label        tables: the column with the labels, or a comparison such as "delay>15"
    validation   the share of the rows held out while C is chosen, "20%" or 0.2: at random, by `seed`
    group_column  a column: rows with one value are held out together, and it makes no features
    time_column  a column: the latest rows are held out instead
    store        where to keep the store that is made; None: it is removed at the end
    convert      more options of `streamcut.convert`, such as {"categorical": "site", "hash_bits": 22}
    C            a value or several; None: 0.01, 0.1 and 1, then further powers of ten while the last is the best (0.0001 to 1000)
    measure      of streamcut.evaluate: the one to choose C by; None: log loss where there are probabilities
    on_told      called with a sentence about each step
    checkpoint   a folder for checkpoints, or streamcut.CheckpointOptions, which also resumes; needs `store`
    stop         called after every block of rows; on_iteration: called with each solvers.progress.Iteration

    In addition to what `convert` does, numbers are standardised, and texts (several words in most values, or long) get tf-idf
    weights unless features are hashed. Columns that look like identifiers are left out. Two labels get the logistic loss, several
    the softmax. Options of `train`, all of them by name, apply to each training:

    {options}

    Raises what `convert`, `tune` and `train` raise; KeyboardInterrupt for an interrupt before the last training. An interrupt
    during it returns the best model so far with a warning.

    >>> rows = [{"site": site, "click": click} for site, click in zip("aabb" * 30, ["no", "no", "yes", "yes"] * 30)]
    >>> found = streamcut.fit(rows, label="click", C=1.0)
    >>> found.predict({"site": "b"}).tolist()
    ['yes']
    """


@verb("streamcut.io.conversion.convert", ConvertOptions)
def convert(
    inputs: Any,
    output: str | os.PathLike,
    *,
    progress: Callable[[Progress], None] | None = None,
    on_recipe: Callable[[Recipe], None] | None = None,
    on_told: Callable[[str], None] | None = ...,
    **options,
) -> ConvertReport:
    """Convert `inputs` to the store `output`, which may be a URL of an object store, as inputs may.

    `inputs` are a path or several (files, directories, globs, stores, "-" for standard input), or a frame: pandas, polars,
    pyarrow, DuckDB, or anything with `__arrow_c_stream__`; Dask's by partitions. Arrays and sparse matrices are written by
    `streamcut.create`.
    `progress` is called a few times a second, `on_recipe` before the rows are read, with the recipe that makes them. `on_told` is
    called with a sentence for each guess worth knowing, such as a column left out as an identifier, and for possible mistakes in
    a table, such as a column that alone determines the label. By default these are warnings; None: no such checks.

    Options, by name only; not every format takes all of them:

    {options}

    Raises UsageError, NotFoundError, BadInputError, MemoryBudgetError, DiskFullError, LockedError, and CorruptError for an input
    store that is damaged.

    >>> with open("rows.svm", "w") as file:
    ...     _ = file.write("+1 1:0.5 3:2\\n-1 2:1\\n+1 3:1.5\\n-1 1:-1 2:0.5\\n")
    >>> streamcut.convert("rows.svm", "rows.zarr").rows
    4
    """


@verb("streamcut.training", TrainOptions)
def train(
    data: Any,
    *,
    label: str | None = None,
    convert: Mapping[str, Any] | None = None,
    on_iteration: Observer | None = None,
    callback: Callable[[Any], Any] | None = None,
    on_plan: Callable[[MemoryPlan], None] | None = None,
    checkpoint: CheckpointOptions | str | None = None,
    stop: Callable[[], bool] | None = None,
    progress: bool | Display = False,
    **options: Any,
) -> Model:
    """Train a linear or kernel model: for two classes, linear, min ½‖w‖² + C Σ u_i ℓ(y_i⟨w, x_i⟩), ℓ the hinge by default.

    data             an opened store, or its path; (X, y) or (X, y, row weights) of arrays, sparse matrices or a frame of
                     numbers; a file of svmlight text; with `label` any other that `convert` reads ("clicks.parquet"), a frame,
                     or rows as dicts. Raw data is converted to a temporary store in `scratch`
    label            raw data: the column with the labels (or a comparison)
    convert          raw data: more options of `streamcut.convert`, such as {"categorical": "site", "hash_bits": 22}
    checkpoint       a folder for checkpoints, or streamcut.CheckpointOptions, which also resumes
    stop             called after every block of rows, or pass; once it returns True, the best model so far is returned
    on_iteration     called with each solvers.progress.Iteration
    on_plan          called with the memory plan before any work
    callback         as on_iteration, but once it returns True training ends with the best model so far, as if interrupted
    progress         True: show lines and a bar on a terminal, lines in a notebook, an occasional line in a log; or a Display

    Options, all of them by name:

    {options}

    Raises UsageError for bad options or the checkpoint of another run, BadInputError for data without two classes,
    MemoryBudgetError when `memory` cannot be kept, CorruptError for damaged data, DiskFullError when `scratch` is too small,
    ClusterLostError when a Dask cluster is gone, KeyboardInterrupt when `stop` returns True before there is a model.
    Without `stop`, Ctrl-C returns the best model so far with a warning; a second one raises KeyboardInterrupt at once.

    >>> model = streamcut.train("rows.zarr", C=10.0)  # made in the example of `convert`
    >>> model.converged, model.certificate.lower_bound <= model.certificate.primal
    (True, True)
    """


@verb("streamcut.tuning", TrainOptions)
def tune(
    data: Any,
    grid: Mapping[str, Sequence[Any]],
    *,
    label: str | None = None,
    convert: Mapping[str, Any] | None = None,
    validation: Any = None,
    folds: int | None = None,
    seed: int = 0,
    group_column: str | None = "qid",
    measure: str | None = None,
    on_model: Callable[[dict[str, Any], int, Tried], None] | None = None,
    on_trained: Callable[[dict[str, Any], int | None, Model], None] | None = None,
    on_iteration: Observer | None = None,
    checkpoint: CheckpointOptions | str | None = None,
    stop: Callable[[], bool] | None = None,
    **options: Any,
) -> Tuned:
    """Train a model for every point of `grid` and return the best.

    grid        {"C": values, "l1": values, "loss": names, "positive_weight": values, …}: any options of `train` that affect
                the result, except the task and warm_start
    label, convert   raw data: the column with the labels, and more options of `streamcut.convert`, as `train` takes them
    validation  data on which all models are measured, as `evaluate` takes it; the best model is returned
    folds       instead: K-fold cross-validation on rows drawn at random; the best options are then used to train on all rows
    seed        of the folds, which depend only on it and the row numbers, not on how rows are stored; and of solvers that draw
    group_column  "qid": rows of one qid are in one fold, where the data has any; None: every row is drawn independently
    measure     the measure of streamcut.evaluate to choose by: the greatest is best, or the least for a loss or an error; None:
                the first that models of the task have
    on_model    called with (options of the point, fold from 0, result); on_trained: with (options, fold, model) before
                models are measured, where they are trained together; the fold of all rows is None
    checkpoint  linear solvers: a folder for checkpoints, or streamcut.CheckpointOptions, which also resumes; the caller
                removes it at the end
    on_iteration, stop   those of `train`

    Models of linear solvers are trained together on threads: each pass over the data serves all folds and values of l1 (and of
    C, where they do not continue from each other); or one after another, where features differ much in size, or the intercept
    is free, and `train` takes Newton's method. Where possible each C continues from the previous one (`train_path`), also
    for the models of all rows, from which the answer is chosen. Each model equals the one trained alone on the same rows with one
    worker. Only where memory is too small for a row cache each, models of bundle-dca share one, with fewer cuts: they are then
    different models within the same tolerance, with certificates of their own, and reproducible as long as memory is the same.
    All other models are trained from scratch, one after another. The other arguments and errors are those of `train`; also
    UsageError for fewer rows than folds, KeyboardInterrupt when `stop` returns True.

    >>> found = tune("rows.zarr", {"C": [0.1, 10.0]}, validation="rows.zarr")  # made in the example of `convert`
    >>> len(found.cells), found.best.measure
    (2, 'accuracy')
    """


@verb("streamcut.cross_validation", TrainOptions)
def cross_validate(
    data: Any,
    *,
    label: str | None = None,
    convert: Mapping[str, Any] | None = None,
    folds: int = 5,
    seed: int = 0,
    group_column: str | None = "qid",
    time_column: str | None = None,
    measure: str | None = None,
    on_iteration: Observer | None = None,
    checkpoint: CheckpointOptions | str | None = None,
    stop: Callable[[], bool] | None = None,
    **options: Any,
) -> CrossValidated:
    """Train with the same `options` on all folds but one and measure on that one, for each fold in turn.

    data        what `streamcut.tune` takes, with label and convert for raw rows; their recipe is made from all rows
    folds, seed   as there
    group_column  "qid": rows of one qid stay together, as there; else a column of a table: rows with one value are in one fold,
                and it makes no features; None: every row is drawn independently
    time_column  a column of a table: its rows are split by time into folds + 1 parts of about equal size; each part but the
                first is measured by a model of all earlier parts. Rows without a time are always trained on
    measure     of streamcut.evaluate, for `values` and `mean`; None: the first that models of the task have
    checkpoint  linear solvers: a folder for checkpoints, or streamcut.CheckpointOptions, which also resumes
    on_iteration, stop   those of `train`

    Linear solvers train the models of all folds in the same passes over the data, unless a column defines the folds. The other
    arguments and the errors raised are those of `tune`.

    >>> found = cross_validate("rows.zarr", folds=2, C=10.0)  # made in the example of `convert`
    >>> len(found.values("accuracy")), found.measure
    (2, 'accuracy')
    """


@verb("streamcut.prediction")
def predict(
    model: Model | str | os.PathLike,
    data: Any,
    *,
    answer: str = "labels",
    ignore_extra_features: bool = False,
    index_base: int | None = None,
    strict: bool = False,
    raw: Raw | None = None,
    memory: str = "auto",
    trained_on: Any = None,
) -> Any:
    """The predictions of `model` for all rows of `data`, in their order; `unseen` counts what did not fit the model's recipe.

    model    a model, or the path of its file
    data     an opened data set, the path of a store, of svmlight text or of a table, a frame (pandas, polars, DuckDB, pyarrow),
             rows as dicts (one, or a list of them), or X (n × d, NumPy or SciPy sparse); on the command line also -
    answer   "labels": float64 (n,), or words (object, n) where the labels are words; "scores": float64 (n,) or (n, classes);
             "probabilities" of a model that has them: float64 (n,) of the positive label, or (n, classes); "certified":
             CertifiedAnswers: labels, which of them are `proved` to be those of the exact optimum of the model's problem, and
             bounds `low` and `high` on its scores; the smaller the gap (--tol-relative), the more are proved. They are as true
             as the model's lower bound, which `verify` checks. On the command line also both: labels and scores.
    trained_on  with "certified", for a free intercept and scaled features: the training rows (a data set, a store, (X, y))
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


@verb("streamcut.evaluation")
def evaluate(
    model: Model | str | os.PathLike,
    data: Any,
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


@verb("streamcut.reports.explained")
def explain(
    model: Model | str | os.PathLike,
    data: Any,
    *,
    top: int | None = 10,
    label: Any = None,
    against: Any = None,
    strict: bool = False,
    raw: Raw | None = None,
    memory: str = "auto",
) -> list[Explanation]:
    """What each feature adds to the score of each row of `data`, for a linear `model`.

    data     rows as `streamcut.predict` takes them: a frame, one row or several as dicts, a file, a store, X
    top      parts of each explanation; None: all that are not 0
    label    for several classes, the class whose scores are explained, its word or number; None: each row's highest-scoring class
    against  rows whose mean (row weights counted) is the row of comparison, such as those of the training: one pass. None: a row
             of zeros, which has numbers standardised by the recipe at their mean, no category and no word
    strict, raw, memory   of `streamcut.predict`

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


@verb("streamcut.reports.named_weights")
def weights(
    model: Model | str | os.PathLike, *, top: int | None = None, sort: str = "magnitude", label: Any = None
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
    model: Model | str | os.PathLike, data: Any, *, robust: bool = False, clusters: Any = None, memory: str = "auto"
) -> StandardErrors:
    """Standard errors, z and p of the weights of a linear model with loss "logistic", "squared" or "poisson", in one pass.

    data      the rows that it was trained on: an opened data set, the path of a store, (X, y) or (X, y, row weights)
    robust    the sandwich instead of the errors that assume the model to be true
    clusters  rows of the same cluster depend on each other: an array (n,) that names the cluster of each row, or "qid", those of
              the data; implies robust
    memory    "4GB", "50%" or "auto": ceiling on the resident memory of this process; clusters take 8 D bytes each

    Raises UsageError for other models, rows that it was not trained on and clusters that do not fit the rows; MemoryBudgetError.
    """


@verb("streamcut.calibration")
def calibrate(model: Model | str | os.PathLike, data: Any, *, memory: str = "auto") -> Model:
    """`model`, of two or several classes, with probabilities fitted on `data`.

    model    a model, or the path of its file
    data     what `evaluate` takes, with labels; not the training rows, whose scores are too extreme: a warning is given where
             the data is known to be the same
    memory   "4GB", "50%" or "auto": ceiling on the resident memory of this process

    Two classes: 1 / (1 + exp(A·score + B)) for the positive label (Platt scaling). Several: proportional to
    exp(scale·score + offset) with an offset for each class.

    Each row takes 24 bytes for two classes; for K, 16 + 8 K. Beyond 64 MiB, or what `memory` leaves, these go into a scratch file
    (TMPDIR, else /var/tmp). Raises MemoryBudgetError when `memory` is too little, UsageError for models of other tasks,
    BadInputError for labels that the model does not know, and for a single class.

    >>> model = calibrate(streamcut.train("rows.zarr"), "rows.zarr")  # made in the example of `convert`
    >>> (streamcut.predict(model, "rows.zarr", answer="probabilities") > 0.5).tolist()
    [True, False, True, False]

    In a shell:
      streamcut calibrate m.npz validation.zarr
      streamcut predict m.npz test.zarr --answer probabilities
    """


@verb("streamcut.verification")
def verify(
    model: Model | str | os.PathLike,
    data: Any,
    *,
    prove: bool = False,
    max_passes: int = 100,
    memory: str = "auto",
    force: bool = False,
) -> Verification:
    """Recompute the certificate of `model` on `data`, the rows that it was trained on: an opened data set, the path of a store,
    of text or of a table, a frame, (X, y) or (X, y, row weights).

    prove    also prove the recorded bound from the rows and the weights alone, without trusting the certificate: linear models
             by a training that starts from the weights where possible and ends once the bound is proved or refuted; kernel
             models by their dual variables, which the rows show to be feasible
    max_passes  maximum number of passes of that training
    memory   "4GB", "50%" or "auto": ceiling on the resident memory of this process
    force    accept data other than the training data; the certificate then says nothing about it

    For a model without a certificate only the objective is computed, for its C.
    Raises UsageError for other data without `force` and for what cannot be proved, BadInputError for labels or features that the
    model does not know, and the errors of `train`.

    In a shell:
      streamcut verify m.npz
      streamcut verify m.npz train.zarr --prove
      streamcut verify liblinear.model train.zarr --C 1
      streamcut verify weights.json train.zarr --C 1 --loss logistic --max-passes 6
    """


@verb("streamcut.certifying.certify")
def certify(
    model: Any,
    data: Any,
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
    C, loss    of F = ½‖w‖² + C Σ u_i ℓ_i, if the model does not record them; if given, they override it
    epsilon    of the epsilon-insensitive losses, if the model does not record it
    intercept  "free": b costs nothing (not of Crammer & Singer's loss); "none"; or the value of a bias feature whose weight
               is regularised
    memory     "4GB", "50%" or "auto": ceiling on the resident memory of this process

    Raises UsageError for models that have no such problem or do not record it; BadInputError for data with one label or with
    other features; MemoryBudgetError, and what opening the data raises.
    """


@verb("streamcut.reports.page")
def report(
    model: Model | str | os.PathLike,
    path: str | os.PathLike | None = None,
    *,
    data: Any = None,
    feature_names: str | os.PathLike | None = None,
    plots: str | os.PathLike | None = None,
    memory: str = "auto",
    force: bool = False,
) -> Report:
    """One HTML page about `model`: its certificate, weights, training and, with `data`, its quality.

    model    a model, or the path of its file
    path     the page (.html) to write
    data     labelled rows to measure the model on, as `evaluate` takes them; read once
    feature_names   a file with the name of each feature on a line of its own, instead of those of the data
    plots    a folder for all plots as SVG and PNG, created if needed; without it and `path` nothing is written
    memory   "4GB", "50%" or "auto": ceiling on the process while models and data are read
    force    replace `path`, if it exists

    The page needs no other file and no network; the numbers are in it as JSON, too. Needs matplotlib: streamcut[plots].

    The result has `html()`, `figures()`, `write` and `write_plots`. Raises UsageError for a page that exists, NotFoundError,
    MemoryBudgetError.

    In a shell:
      streamcut report m.npz -o m.html
      streamcut report m.npz -o m.html --data test.zarr --feature-names words.txt
      streamcut report m.npz --plots figures
    """


@verb("streamcut.exports.export")
def export(
    model: Model | str | os.PathLike,
    path: str | os.PathLike,
    *,
    to: str | None = None,
    replace: bool = True,
    without_recipe: bool = False,
    without_probabilities: bool = False,
    memory: str = "auto",
) -> None:
    """Write `model` to `path` for another program, which then gives the same labels and scores.

    model    a model, or the path of its file
    to       the program to write for: json, liblinear, onnx or sklearn; None: by the ending of `path`, else LIBLINEAR
    replace  replace the file if it exists
    without_recipe         leave out how raw rows become features, and words for labels, if the program cannot hold them
    without_probabilities  leave out the probabilities of the model
    memory   "4GB", "50%" or "auto": ceiling on the resident memory of this process

    What the program cannot hold is refused, not left out silently.

    Raises MemoryBudgetError if `memory` is too little, UsageError for an unknown program, for a model that it cannot hold and,
    unless `replace`, if the file exists; DiskFullError.

    In a shell:
      streamcut export m.npz m.liblinear
      streamcut export m.npz m.onnx
    """
