"""Verbs that make stores and models."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from streamcut.api.verb import verb
from streamcut.config import CheckpointOptions, TrainOptions
from streamcut.io.conversion.options import ConvertOptions

if TYPE_CHECKING:
    from streamcut.execution.plan import MemoryPlan
    from streamcut.fitting import Fitted
    from streamcut.grids.search import Tried
    from streamcut.io.conversion.convert import ConvertProgress, ConvertReport
    from streamcut.io.recipe.recipe import Recipe
    from streamcut.models.model import Model
    from streamcut.progress import Display
    from streamcut.solvers.progress import Observer
    from streamcut.tuning import CrossValidated, Tuned


@verb("streamcut.fitting", TrainOptions, command="From a table to a validated model in one go.")
def fit(
    data: object,
    label: str | None = None,
    *,
    validation: str | float = "20%",
    group_column: str | None = None,
    time_column: str | None = None,
    store: str | os.PathLike | None = None,
    convert: Mapping[str, object] | None = None,
    C: float | Sequence[float] | None = None,
    measure: str | None = None,
    on_told: Callable[[str], None] | None = None,
    on_iteration: Observer | None = None,
    checkpoint: CheckpointOptions | str | None = None,
    stop: Callable[[], bool] | None = None,
    **options: object,
) -> Fitted:
    """Make features of `data`, choose C on held-out rows, train on all rows, and report how good the model is.

    data         a file, folder or glob of CSV, Parquet, JSON lines, Arrow or svmlight; a folder of documents; cells (.h5ad); a
                 frame (any that `convert` takes), rows as dicts; a store, or its path; (X, y) or (X, y, row weights)
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
    >>> fitted = streamcut.fit(rows, label="click", C=1.0)
    >>> fitted.predict({"site": "b"}).tolist()
    ['yes']
    """


@verb("streamcut.io.conversion.convert", ConvertOptions, command="Convert text, tables or matrices to a store.")
def convert(
    inputs: object,
    output: str | os.PathLike,
    *,
    progress: Callable[[ConvertProgress], None] | None = None,
    on_recipe: Callable[[Recipe], None] | None = None,
    on_told: Callable[[str], None] | None = ...,
    **options,
) -> ConvertReport:
    """Convert `inputs` to the store `output`, which may be a URL of an object store, as inputs may.

    `inputs` are a path or several (files, directories, globs, stores, "-" for standard input), or a frame: pandas, polars
    (also lazy), pyarrow (also its data sets), DuckDB, or anything with `__arrow_c_stream__`; Dask's by partitions; an iterator of
    frames or record batches, which is read once; rows as dicts. Arrays and sparse matrices are written by `streamcut.create`.
    `progress` is called a few times a second, `on_recipe` before the rows are read, with the recipe that makes them. `on_told` is
    called with a sentence for each guess to know of, such as a column left out as an identifier, and for possible mistakes in
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


@verb("streamcut.training", TrainOptions, command="Train a model: linear with a certificate, or with a kernel; choose options.")
def train(
    data: object,
    *,
    label: str | None = None,
    convert: Mapping[str, object] | None = None,
    on_iteration: Observer | None = None,
    callback: Callable[[Any], object] | None = None,
    on_plan: Callable[[MemoryPlan], None] | None = None,
    checkpoint: CheckpointOptions | str | None = None,
    stop: Callable[[], bool] | None = None,
    progress: bool | Display = False,
    **options: object,
) -> Model:
    """Train a linear or kernel model: for two classes, linear, min ½‖w‖² + C Σ u_i ℓ(y_i⟨w, x_i⟩), ℓ the hinge by default.

    data             an opened store, its path, or a list of paths of stores with one recipe, whose rows are joined; (X, y) or
                     (X, y, row weights) of arrays, sparse matrices or a frame of numbers; a file of svmlight text; with `label`
                     any other that `convert` reads ("clicks.parquet"), a frame, or rows as dicts. Raw data is converted to a
                     temporary store in `scratch`
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
    data: object,
    grid: Mapping[str, Sequence[object]],
    *,
    label: str | None = None,
    convert: Mapping[str, object] | None = None,
    validation: object = None,
    folds: int | None = None,
    seed: int = 0,
    group_column: str | None = "qid",
    measure: str | None = None,
    on_model: Callable[[dict[str, object], int, Tried], None] | None = None,
    on_trained: Callable[[dict[str, object], int | None, Model], None] | None = None,
    on_iteration: Observer | None = None,
    checkpoint: CheckpointOptions | str | None = None,
    stop: Callable[[], bool] | None = None,
    **options: object,
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
                log loss where there are probabilities, else the first that models of the task have
    on_model    called with (options of the point, fold from 0, result); on_trained: with (options, fold, model) before
                models are measured, where they are trained together; the fold of all rows is None
    checkpoint  linear solvers: a folder for checkpoints, or streamcut.CheckpointOptions, which also resumes; the caller
                removes it at the end
    on_iteration, stop   those of `train`

    Models of linear solvers are trained together on threads: each pass over the data serves all folds and values of l1 (and of
    C, where they do not continue from each other); or one after another, where features differ much in size, or the intercept
    is free, and `train` takes Newton's method. Where possible each C continues from the previous one, or, of one C, each l1 or
    l1_only from the one above it, also for the models of all rows, from which the answer is chosen. Each model equals the one
    trained alone on the same rows with one worker. Only where memory is too small for a row cache each, models of bundle-dca
    share one, with fewer cuts: they are then different models within the same tolerance, with certificates of their own, and
    reproducible as long as memory is the same. All other models are trained from scratch, one after another. The other arguments
    and errors are those of `train`; also UsageError for fewer rows than folds. Once `stop` returns True, the best model so far on
    `validation` is returned; with `folds`, or without a model, KeyboardInterrupt is raised.

    >>> tuned = tune("rows.zarr", {"C": [0.1, 10.0]}, validation="rows.zarr")  # made in the example of `convert`
    >>> len(tuned.cells), tuned.best.measure
    (2, 'accuracy')
    """


@verb("streamcut.tuning", TrainOptions)
def cross_validate(
    data: object,
    *,
    label: str | None = None,
    convert: Mapping[str, object] | None = None,
    folds: int = 5,
    seed: int = 0,
    group_column: str | None = "qid",
    time_column: str | None = None,
    measure: str | None = None,
    on_iteration: Observer | None = None,
    checkpoint: CheckpointOptions | str | None = None,
    stop: Callable[[], bool] | None = None,
    **options: object,
) -> CrossValidated:
    """Train with the same `options` on all folds but one and measure on that one, for each fold in turn.

    data        what `streamcut.tune` takes, with label and convert for raw rows; their recipe is made from all rows
    folds, seed   as there
    group_column  "qid": rows of one qid stay together, as there; else a column of a table: rows with one value are in one fold,
                and it makes no features; None: every row is drawn independently
    time_column  a column of a table: its rows are split by time into folds + 1 parts of about equal size; each part but the
                first is measured by a model of all earlier parts. Rows without a time are always trained on
    measure     of streamcut.evaluate, for `values` and `mean`; None: log loss where there are probabilities,
                else the first that models of the task have
    checkpoint  linear solvers: a folder for checkpoints, or streamcut.CheckpointOptions, which also resumes
    on_iteration, stop   those of `train`

    Linear solvers train the models of all folds in the same passes over the data, unless a column defines the folds. The other
    arguments and the errors raised are those of `tune`.

    >>> folds = cross_validate("rows.zarr", folds=2, C=10.0)  # made in the example of `convert`
    >>> len(folds.values("accuracy")), folds.measure
    (2, 'accuracy')
    """
