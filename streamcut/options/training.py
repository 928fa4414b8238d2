"""The options of `train`: what is learnt, by which algorithm, with which kernel, until when, in which memory, where."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from streamcut.foundation.units import part_of
from streamcut.loss_table import CLASSES_LOSSES, LABELLING_LOSSES, ROW_LOSSES
from streamcut.options.option import ABOVE_0, FINITE, NOT_NEGATIVE, SECONDS, SIZE, Check, option, whole

TASKS = ("auto", "binary", "regression", "multiclass", "one-class", "ranking", "roc-area", "sequence")
SINGLE = ("binary", "regression", "multiclass")  # tasks with losses of single rows
_LEAST, _LARGEST = 1e-100, 1e100  # of C: (C · rows · ‖x‖)² has to be a float64
_POSITIVE = Check(f"is not a number between {_LEAST:g} and {_LARGEST:g}", lambda value: _LEAST <= value < _LARGEST)
_LAMBDA = Check(
    f"is not 0, a number between {_LEAST:g} and {_LARGEST:g}, or a part such as '10%'",
    lambda value: value == 0.0 or _LEAST <= value < _LARGEST,
    words=lambda value: part_of(value) is not None,
)
_GAMMA = Check("is not a number above 0, or 'auto'", ABOVE_0.good, words=lambda value: value == "auto")
_learnt, _algorithm, _kernel, _stop, _machine = (
    partial(option, group=heading) for heading in ("What is learnt", "Solver", "Kernels", "When to stop", "Memory and machines")
)
_FEATURES = {"kernel": "rbf", "gamma": 0.7, "nystroem": 12}
_WAVES = {"kernel": "rbf", "gamma": 0.7, "fourier": 12}
_POLY = {"kernel": "poly", "gamma": 0.7, "maintenance": "remove"}


def _of_loss(name: str) -> dict[str, tuple[str, ...]]:
    """tasks, for option `name` that only some losses of single rows have: those with targets as these losses take."""
    targets = {loss.targets for loss in ROW_LOSSES.values() if name in loss.options}
    return {"tasks": tuple({"labels": "binary", "numbers": "regression"}[kind] for kind in sorted(targets))}


@dataclass(frozen=True, slots=True)
class TrainDeclarations:
    """The fields of TrainOptions; None means "the default" or "off" as their texts say."""

    # fmt: off
    task: str = _learnt("auto",
        "What to learn. auto: by the data. Rows with a qid are ranked, fractions are targets, more than two labels are classes.",
        python="Rankings are within a qid; a sequence is the rows of one qid.", choices=TASKS, tried=("roc-area", "sequence"))
    # of one class C would change the length of w and nothing else
    C: float = _learnt(1.0, "Weight of the loss of one row, as in LIBLINEAR.",
        shell="Several (0.1,1,10) share passes, or each starts from the last; the best on --validation is kept.",
        python="The same as scikit-learn's.", metavar="NUMBER[,NUMBER…]", check=_POSITIVE,
        tasks=tuple(task for task in TASKS if task != "one-class"), solvers="linear budgeted sampled smo sbp sdca pegasos",
        tried=(0.05,))
    l1: float | str = _learnt(0.0,
        "Elastic net: λ in ½‖w‖² + λ‖w‖₁ + C·losses, for losses of single rows. The larger λ, the more weights are exactly 0.",
        shell="Several (50%,20%,5%) are trained in turn from the largest down. Percentages are of λmax, the least λ at which all "
        "weights are 0; finding it takes a pass.",
        python='"10%" is of λmax, the least λ at which all weights are 0; finding it takes a pass.',
        metavar="NUMBER|PART%[,…]", kind="part", check=_LAMBDA, tasks=SINGLE, solvers="bundle-dca newton cutting-planes",
        tried=(2.0,))
    l1_only: float | str = _learnt(0.0,
        "Lasso: λ in λ‖w‖₁ + C·losses, without ½‖w‖², for smooth losses; the intercept is penalised like any weight, unless it "
        "is free. Percentages are of λmax.", python="working-set solves it, newton if features are few.",
        metavar="NUMBER|PART%", kind="part", check=_LAMBDA,
        tasks=("binary", "regression"), solvers="newton working-set", tried=(2.0, "20%"))
    scale: str = _learnt("none", "Train with each feature divided by its largest absolute value (max-abs) or its standard "
        "deviation (std, not centred); the model takes unscaled values.",
        python="Row weights count. The certificate is for the scaled problem.", choices=("none", "max-abs", "std"),
        tasks=SINGLE, solvers="linear", tried=("std", "max-abs"))
    # of rankings it would cancel in every pair
    bias: float = _learnt(1.0, "Value of the constant feature of every row; 0 for none.",
        python="Its weight is regularised like any other; only with smo and sbp is 1 an unregularised intercept.",
        check=NOT_NEGATIVE, tasks=(*SINGLE, "sequence"), solvers="linear sampled smo sbp", tried=(0.0, 3.0))
    intercept: str = _learnt("auto", "Whether the intercept is regularised like any weight (that of --bias), free, or left out. "
        "auto: free for tables and in `fit`, else regularised.",
        python="'free' is what scikit-learn, R and statsmodels have; of several classes one-vs-rest has it.",
        choices=("auto", "regularised", "free", "none"), tasks=SINGLE, solvers="linear", tried=("free", "none"))
    positive_weight: float = _learnt(1.0, "Factor on C for rows of the positive label.", check=_POSITIVE, tasks=("binary",),
        solvers="linear budgeted sampled smo", tried=(3.0,))
    # a number, or a word until the data say which number it is
    positive_label: Any = _learnt(None,
        "The positive label (a number or a word); all others are negative. Default: the greater number or last word of two.",
        metavar="LABEL", tasks=("binary",), tried=(-1.0,))
    loss: str = _learnt("auto", "Loss of a row. Binary: hinge (the default), squared-hinge, logistic, or a bound on a measure "
        "of the whole data as in SVM-perf (f1, prbep, prec@k, rec@k, error). Classes: hinge (the default), softmax. Tables have "
        "logistic and softmax, unless a solver, a kernel or one-vs-rest is asked for. "
        "Regression: squared (the default), huber, epsilon-insensitive, squared-epsilon-insensitive, quantile, poisson (counts "
        "of mean e^score); bsca, bsgd: epsilon-insensitive (the default), quantile.",
        python="One-vs-rest has the losses of two classes. bsca and bsgd take the mean of the targets as the intercept.",
        choices=("auto", *ROW_LOSSES, *CLASSES_LOSSES, *LABELLING_LOSSES), tasks=SINGLE, solvers="linear budgeted",
        tried=("f1", "error", "logistic", "squared-hinge", "softmax", "huber", "poisson"))
    epsilon: float = _learnt(0.1, "ε-insensitive losses: residuals up to ε cost nothing.",
        check=Check(NOT_NEGATIVE.complaint, lambda value: 0.0 <= value < _LARGEST), **_of_loss("epsilon"),
        solvers="linear budgeted", setting=True,
        tried=(({"loss": "epsilon-insensitive"}, 0.3), ({"loss": "squared-epsilon-insensitive"}, 0.3)))
    delta: float = _learnt(1.0, "Huber loss: the residual at which it becomes linear.",
        check=Check(ABOVE_0.complaint, lambda value: 0.0 < value < _LARGEST), **_of_loss("delta"), solvers="linear",
        tried=(({"loss": "huber"}, 0.5),), setting=True)
    quantile: float = _learnt(0.5, "Quantile loss: the share of the targets that should lie below.",
        check=Check("is not a number above 0 and below 1", lambda value: 0.0 < value < 1.0), **_of_loss("quantile"),
        solvers="linear budgeted", tried=(({"loss": "quantile"}, 0.7),), setting=True)
    k: str | None = _learnt(None, "For prec@k and rec@k: a number of rows (100) or a share of them (10%).", metavar="ROWS",
        tasks=("binary",), solvers="cutting-planes", tried=("40%",), setting=True)
    strategy: str = _learnt("crammer-singer", "Multiclass: one joint problem for all classes, or one-vs-rest.",
        python='Loss "softmax" is joint anyway.', choices=("crammer-singer", "one-vs-rest"), tasks=("multiclass",),
        solvers="linear", tried=("one-vs-rest",))
    # of task roc-area, one list of pairs, both are the same
    normalisation: str = _learnt("pairs", "Ranking: average over all pairs, or over queries of each query's average.",
        choices=("pairs", "queries"), tasks=("ranking",), solvers="cutting-planes newton", tried=("queries",), setting=True)
    # a path, or a model in memory
    warm_start: Any = _learnt(None, "Start from this model instead of zero.", python="A path, or a model in memory. Linear "
        "solvers take its weights, and on the same data its proof; bsca and bsgd its support vectors and steps, and rows of "
        "other data count as seen before.", metavar="FILE", tasks=SINGLE, solvers="linear budgeted")
    validation: Any = _learnt(None,
        "Rows to measure models on, in any form `evaluate` takes; kernel solvers do so as they go.",
        metavar="DATA",
        solvers="budgeted stochastic", role="watcher")
    solver: str = _algorithm("auto",
        "The algorithm. auto: newton for losses of rows and pairs and few features, bundle-dca for most other linear models.",
        tried=("ocas", "cpa"))
    cut: Literal["predicted", "exact"] = _algorithm("predicted",
        "Where OCAS takes its cuts: predicted needs one pass an iteration, exact (the paper) two.",
        choices=("predicted", "exact"), tasks=(*SINGLE, "sequence"), solvers="ocas", tried=("exact",), setting=True)
    max_cuts: int | None = _algorithm(None,
        "Maximum number of cutting planes in memory, each as long as the weights.",
        python="None: as many as fit in 128 MiB, 20 to 1000, fewer when memory is short; newton 8.",
        check=whole(2), solvers="newton cutting-planes sampled", tried=(4,), setting=True)
    sweeps: int = _algorithm(50, "bundle-dca: maximum number of sweeps (epochs over cached rows) after a pass.", check=whole(0),
        tasks=SINGLE, solvers="bundle-dca", tried=(0,), setting=True)
    seed: int = _algorithm(0, "Random seed of bundle-dca, of all kernel solvers except smo, of --nystroem and --fourier.",
        check=whole(0), solvers="bundle-dca budgeted stochastic sampled", tried=(1, (_FEATURES, 1), (_WAVES, 1)))
    kernel: str = _kernel("linear", "rbf: exp(−γ‖x−x′‖²), poly: (γ⟨x,x′⟩ + coef0)^degree.", choices=("linear", "rbf", "poly"),
        tried=("rbf", "linear", "poly"))
    gamma: float | str = _kernel("auto", "γ; auto: 1 / (features × variance of all values).", metavar="NUMBER", kind="number",
        check=_GAMMA, tried=(0.1, (_FEATURES, 0.1)), kernels="rbf poly")
    degree: int = _kernel(3, "Degree of the polynomial kernel.", check=whole(1), tried=(2, (_POLY, 2)), setting=True,
        kernels="poly")
    coef0: float = _kernel(0.0, "Constant term of the polynomial kernel.", check=NOT_NEGATIVE, tried=(1.0, (_POLY, 1.0)),
        setting=True, kernels="poly")
    nystroem: int | None = _kernel(None, "Linear solvers: approximate the kernel by features from this many random rows.",
        metavar="ROWS", check=whole(1), solvers="linear", tried=(({"kernel": "rbf"}, 12),), kernels="rbf poly")
    fourier: int | None = _kernel(None, "Linear solvers: approximate the rbf kernel by this many random waves.",
        metavar="FEATURES", check=Check("is not an even number, 2 or above", lambda value: value >= 2 and value % 2 == 0),
        solvers="linear", tried=(({"kernel": "rbf"}, 12),), kernels="rbf poly")
    budget: int | None = _kernel(None, "bsca, bsgd: maximum number of support vectors (default 500).", metavar="VECTORS",
        check=whole(2), solvers="budgeted", tried=(5,))
    maintenance: str = _kernel("auto", "bsca, bsgd: how the budget is kept; auto: merge for rbf, else project.",
        choices=("auto", "merge", "remove", "project", "none"), solvers="budgeted", tried=("remove", "project"), setting=True)
    epochs: float | None = _kernel(None, "Stochastic solvers: number of epochs (default 1).", check=ABOVE_0,
        solvers="budgeted stochastic", tried=(3.0,), setting=True)
    nu: float | None = _kernel(None, "One class: share of rows left outside (default 0.5). sbp: mean slack per row, not C.",
        check=_POSITIVE, tasks=("binary", "one-class"), solvers="cutting-planes sbp", tried=(0.4,))
    kernel_cache: str = _kernel("auto", "smo: memory for kernel columns; auto: what is left of --memory.", metavar="SIZE",
        check=SIZE, solvers="smo", role="resource", setting=True)
    samples: int | None = _kernel(None, "Sampled cuts: rows per cut.", metavar="ROWS", check=whole(2), solvers="sampled",
        tried=(5,), setting=True)
    tol: float | None = _stop(1e-3, "Stop when the gap, in units of mean loss, is at most this; 0: off.",
        python="That is, gap ≤ tol·C·Σu_i. None is off, too.", check=NOT_NEGATIVE, solvers="linear sampled smo",
        tried=(({"tol_relative": None}, 0.2),))
    tol_relative: float | None = _stop(1e-2,
        "Stop when the gap is at most this share of the objective; 0: off.",
        python="That is, gap ≤ tol_relative·F(w), or 1e-12 of the loss at w = 0 if greater; both must hold.", check=NOT_NEGATIVE,
        solvers="linear smo", tried=(({"tol": None}, 0.3),))
    target: float | None = _stop(None, "Stop as soon as the objective is at most this.", check=FINITE,
        solvers="linear sampled smo", role="limit", tried=(1e9,))
    max_passes: int | None = _stop(None, "Stop after this many passes over the data.", check=whole(1),
        solvers="linear sampled", role="limit", tried=(2,))
    max_time: float | None = _stop(None, shell="Stop after this time, for example 90s, 10m, 2h.",
        python="Stop after this time, in seconds.", metavar="TIME", kind="seconds", check=SECONDS, role="limit", tried=(1e-9,))
    memory: str = _machine("auto", "Peak memory of the process: 4GB, 512MiB, 50%, auto.", check=SIZE, role="resource")
    row_cache: str | None = _machine("auto",
        "bundle-dca: memory for the rows that matter most (2GB, none, or 30% of the data); auto: 30% up to 128MiB, then 10%.",
        check=SIZE, tasks=SINGLE, solvers="bundle-dca", tried=("0", "20%"), setting=True)
    scratch: str | None = _machine(None,
        "Folder for what does not fit in memory: row state.", python="None: TMPDIR, else /var/tmp.",
        metavar="DIR", role="resource")
    workers: int | None = _machine(None, "Threads, or processes of a local cluster. Default: one per processor.", check=whole(1),
        role="resource")
    lanes: int | None = _machine(None, "Fixed ranges of rows, each summed in order: the same number gives the same bits on any "
        "machine. Default of bundle-dca for losses of single rows, without --l1: one, which takes fewer passes; a second thread, "
        "or the workers of a cluster, read and score for it.", check=whole(1), solvers="linear", tried=(2,), setting=True)
    scheduler: str = _machine("threads",
        "Where passes run: on threads, in this thread alone (sync), on a local Dask cluster, or on the one at an address.",
        python='A scheduler file (.json) is an address, too; or a distributed.Client (streamcut.execution.cluster).',
        metavar="threads|sync|local-cluster|tcp://HOST:PORT|FILE.json", role="resource")
    # fmt: on
