# Written by scripts/tools/make_stub.py: what type checkers see of the names that __init__.py loads when they are used.
# ruff: noqa
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from streamcut.calibration import calibrate as calibrate
from streamcut.certifying.certify import certify as certify
from streamcut.config import CheckpointOptions
from streamcut.config import CheckpointOptions as CheckpointOptions
from streamcut.cross_validation import cross_validate as cross_validate
from streamcut.evaluation import evaluate as evaluate
from streamcut.execution.plan import MemoryPlan
from streamcut.exports.export import export as export
from streamcut.fitting.fit import fit as fit
from streamcut.grids.selection import Tried
from streamcut.io.conversion.convert import ConvertReport
from streamcut.io.conversion.create import NewStore as create
from streamcut.io.conversion.progress import Progress
from streamcut.io.opening import open_dataset as open
from streamcut.io.places.answers import set_timeout as set_timeout
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.sources.arrays import in_memory as rows
from streamcut.models.files import load_model as load_model
from streamcut.models.files import save_model as save_model
from streamcut.models.model import Model
from streamcut.prediction import predict as predict
from streamcut.progress.display import Display
from streamcut.reports.explained import explain as explain
from streamcut.reports.named_weights import weights as weights
from streamcut.reports.page import report as report
from streamcut.solvers.progress import Observer
from streamcut.tuning import Tuned
from streamcut.verification import verify as verify
from streamcut.weight_errors import standard_errors as standard_errors
from typing import Any
from typing import Literal
import os

__version__: str

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
    task: str = "auto",
    C: float = 1.0,
    l1: float | str = 0.0,
    l1_only: float | str = 0.0,
    scale: str = "none",
    bias: float = 1.0,
    intercept: str = "auto",
    positive_weight: float = 1.0,
    positive_label: Any = None,
    loss: str = "auto",
    epsilon: float = 0.1,
    delta: float = 1.0,
    quantile: float = 0.5,
    k: str | None = None,
    strategy: str = "crammer-singer",
    normalisation: str = "pairs",
    warm_start: Any = None,
    validation: str | None = None,
    solver: str = "auto",
    cut: Literal["predicted", "exact"] = "predicted",
    max_cuts: int | None = None,
    sweeps: int = 50,
    seed: int = 0,
    kernel: str = "linear",
    gamma: float | str = "auto",
    degree: int = 3,
    coef0: float = 0.0,
    nystroem: int | None = None,
    fourier: int | None = None,
    budget: int | None = None,
    maintenance: str = "auto",
    epochs: float | None = None,
    nu: float | None = None,
    batch: int | None = None,
    kernel_cache: str = "auto",
    samples: int | None = None,
    tol: float | None = 0.001,
    tol_relative: float | None = 0.01,
    target: float | None = None,
    max_passes: int | None = None,
    max_time: float | None = None,
    memory: str = "auto",
    row_cache: str = "auto",
    scratch: str | None = None,
    workers: int | None = None,
    lanes: int | None = None,
    scheduler: Any = "threads",
) -> Model: ...
def tune(
    data: Any,
    grid: Mapping[str, Sequence[Any]],
    *,
    label: str | None = None,
    convert: Mapping[str, Any] | None = None,
    validation: Any = None,
    folds: int | None = None,
    seed: int = 0,
    groups: str | None = "qid",
    measure: str | None = None,
    on_model: Callable[[dict[str, Any], int, Tried], None] | None = None,
    on_trained: Callable[[dict[str, Any], int | None, Model], None] | None = None,
    on_iteration: Observer | None = None,
    checkpoint: CheckpointOptions | str | None = None,
    stop: Callable[[], bool] | None = None,
    task: str = "auto",
    C: float = 1.0,
    l1: float | str = 0.0,
    l1_only: float | str = 0.0,
    scale: str = "none",
    bias: float = 1.0,
    intercept: str = "auto",
    positive_weight: float = 1.0,
    positive_label: Any = None,
    loss: str = "auto",
    epsilon: float = 0.1,
    delta: float = 1.0,
    quantile: float = 0.5,
    k: str | None = None,
    strategy: str = "crammer-singer",
    normalisation: str = "pairs",
    warm_start: Any = None,
    solver: str = "auto",
    cut: Literal["predicted", "exact"] = "predicted",
    max_cuts: int | None = None,
    sweeps: int = 50,
    kernel: str = "linear",
    gamma: float | str = "auto",
    degree: int = 3,
    coef0: float = 0.0,
    nystroem: int | None = None,
    fourier: int | None = None,
    budget: int | None = None,
    maintenance: str = "auto",
    epochs: float | None = None,
    nu: float | None = None,
    batch: int | None = None,
    kernel_cache: str = "auto",
    samples: int | None = None,
    tol: float | None = 0.001,
    tol_relative: float | None = 0.01,
    target: float | None = None,
    max_passes: int | None = None,
    max_time: float | None = None,
    memory: str = "auto",
    row_cache: str = "auto",
    scratch: str | None = None,
    workers: int | None = None,
    lanes: int | None = None,
    scheduler: Any = "threads",
) -> Tuned: ...
def convert(
    inputs: Any,
    output: str | os.PathLike,
    *,
    progress: Callable[[Progress], None] | None = None,
    on_recipe: Callable[[Recipe], None] | None = None,
    on_told: Callable[[str], None] | None = ...,
    format: str = "auto",
    labels: str | None = None,
    qid: str | None = None,
    weights: str | None = None,
    categorical: Any = ...,
    numeric: Any = ...,
    text: Any = ...,
    ngrams: str | None = None,
    standardise: bool = True,
    text_weights: str = "auto",
    min_count: int = 1,
    stop_words: Any = None,
    time: Any = ...,
    cross: Any = ...,
    drop: Any = ...,
    id: Any = ...,
    header: bool = True,
    missing: str = "own",
    labels_as: str = "auto",
    missing_labels: str = "error",
    max_categories: int = 250000,
    recipe: Any = None,
    layer: str | None = None,
    index_column: str = "indices",
    value_column: str = "values",
    index_base: int | str | None = None,
    n_features: int | None = None,
    feature_names: Any = None,
    wide_index: bool = False,
    max_line_bytes: Any = None,
    hash_bits: int | None = None,
    dtype: str | None = None,
    duplicates: str = "error",
    label_map: Any = None,
    multilabel: float | None = None,
    label_weights: bool = False,
    keep_zeros: bool = False,
    on_error: str = "raise",
    max_errors: int | None = None,
    backend: str = "zarr",
    shard_nnz: int | None = None,
    shuffle: int | None = None,
    split: float | None = None,
    split_output: str | os.PathLike | None = None,
    split_seed: int = 0,
    group_by_qid: bool = False,
    memory: Any = None,
    threads: int = ...,
    scratch: str | os.PathLike | None = None,
    resume: bool = False,
    force: bool = False,
) -> ConvertReport: ...
