"""How a training runs where options leave that open: decided here, once, from the data's statistics and the memory."""

from __future__ import annotations

from dataclasses import replace
from pkgutil import resolve_name

from streamcut.config import TrainOptions
from streamcut.errors import UsageError
from streamcut.foundation.systems import memory_limit
from streamcut.io.manifest import Statistics
from streamcut.jobs.job import Job
from streamcut.loss_table import ROW_LOSSES
from streamcut.solver_table import SOLVER_TABLE

# Products of features that a pass may sum per entry read: Newton's method takes a third of the passes of dual
# ascent, which costs some 20 products per entry. More, by a factor, with a quadratic loss, where it takes two passes in all, and
# with pairs, which have no dual ascent: OCAS takes three to five times the passes, and often does not end in a hundred.
_PRODUCTS, _MORE = 8.0, 16.0
# For losses with kinks: the most features, as a9a and kdd99 with 120 take two to nine times the passes of dual ascent; the
# fewest rows per feature, as with 10 Newton's method takes 1.1 times the time, with 46 0.7, with 100 0.45; the smallest gap, as
# spambase takes 30 passes to 1e-2, 69 to 1e-4 and more than a hundred to 1e-6, dual ascent on cached rows 14; and the size that
# some value of rows as they come exceeds: where none is above 1 (letter, ijcnn1, mq2007, abalone, covtype scaled, and seven sets
# with --scale std) dual ascent takes a tenth to a half of the passes in about as much time, where they reach 20 to 2e6 (susy to
# computer) two to twelve times as long.
_FEATURES, _ROWS, _LOOSE, _SCALED = 64, 50, 1e-4, 10.0
# Where a value exceeds _WILD, as a Unix time, only Newton ends, with any number of rows. With an l1 dual ascent does not solve
# for cached rows at once, so that more features, with fewer rows per feature, suffice (3 with 20 rows, 60 with 200, 200 with
# 3,000, kdd99: 9 to 89 passes, dual ascent 37 to more than 100).
_WILD, _WITH_L1 = 1e6, (256, 3)
# Smooth losses: the most features where rows are not scaled (spambase 9 to 15 passes, dual ascent 38 to more than 60; 800 rows of
# 150 features between 0.01 and 1000 in size, 0.1 s and never) or full (usps:3, 256 features, C = 1 and 100: 8 to 13 passes, dual
# ascent 10 to more than 60; dna:2, a quarter full, six cases 71 and 31). A class is rare with fewer rows than features, and than
# this part of all.
_WIDE, _FULL, _RARE = 1000, 0.5, 0.02
_DENSE, _TOGETHER, _SOLVED = 0.25, 8.0, 24.0  # of dense rows that many products cost what one does, of Cholesky's as many
_ROOM = 4  # matrices take at most this fraction (1/4) of memory
_MATRICES = 5
_ALWAYS = 1 << 20  # bytes always available: memory is not checked

_JOBS = {  # by problem for linear solvers, else by kind or family
    "binary": ("streamcut.jobs.binary", "BinaryJob"),
    "regression": ("streamcut.jobs.binary", "BinaryJob"),
    "labelling": ("streamcut.jobs.global_risk", "MultivariateJob"),
    "ranking": ("streamcut.jobs.global_risk", "RankingJob"),
    "one-class": ("streamcut.jobs.one_class", "OneClassJob"),
    "one-vs-rest": ("streamcut.jobs.one_by_one", "OneByOneJob"),
    "columns": ("streamcut.jobs.columns", "ColumnsJob"),
    "sequence": ("streamcut.jobs.sequence", "SequenceJob"),
    "budgeted": ("streamcut.jobs.budgeted", "BudgetedJob"),
    "exact-kernel": ("streamcut.jobs.exact_kernel", "ExactKernelJob"),
    "stochastic": ("streamcut.papers.rounds_job", "RoundsJob"),
    "sampled": ("streamcut.papers.sampled_job", "SampledJob"),
}


def choose(options: TrainOptions, statistics: Statistics) -> TrainOptions:
    """`options` with solver "auto" decided: Newton's method where features are few.

    Not where an option was given that Newton's method does not have. It has no row cache, as "0" asks, and draws nothing.
    """
    pairs, row_cache = options.kind == "ranking", "auto" if options.row_cache == "0" else options.row_cache
    seed = options.seed if options.maps else 0
    if options.solver != "auto" or not (options.record.dual or options.record.columns or pairs):
        return options
    for name, record in SOLVER_TABLE.items():
        if record.curved and options.kind in record.trains:
            try:
                curved = replace(options, solver=name, row_cache=row_cache, seed=seed)
            except UsageError:
                continue
            if _few(curved, statistics):
                return curved
    return options


def _few(options: TrainOptions, statistics: Statistics) -> bool:
    """Whether H = Σ u ℓ″ x xᵀ costs little next to the passes it saves, and fits in memory."""
    D = statistics.n_features + (options.bias != 0.0)
    rarest = min((statistics.labels or {0.0: D}).values())
    if options.kind in ("binary", "one-vs-rest") and rarest < min(D, _RARE * statistics.n_rows):
        return False  # the curvature is that of few rows, and far from it others matter (kdd99: 10 passes, not 100)
    scaled = is_scaled(options, statistics)
    if options.kind == "one-vs-rest" and scaled:
        return False
    smooth = options.kind != "ranking" and not ROW_LOSSES[options.chosen_loss].kinks
    entries = max(statistics.nnz, 1)
    per_row = entries / max(statistics.n_rows, 1)
    dense = per_row > _DENSE * D
    crawls = not scaled and options.free and (D <= _FEATURES or (dense and statistics.n_rows >= D))
    if options.l1 and not scaled:
        widest, for_each = _WITH_L1
        crawls = crawls or (widest >= D and statistics.n_rows >= for_each * D)
    if options.kind != "ranking" and not smooth and not crawls:
        asked = min(options.tol or 1.0, options.tol_relative or 1.0)
        fewest = 0 if statistics.max_abs_value > _WILD else _ROWS
        if D > _FEATURES or statistics.n_rows < fewest * D or asked < _LOOSE or scaled:
            return False
    row = D * D / (2.0 * _TOGETHER) if dense else 0.5 * per_row * per_row
    products = statistics.n_rows * row + (statistics.groups or 0) * D * D + D**3 / _SOLVED
    most = _PRODUCTS * (_MORE if options.kind == "ranking" or options.chosen_loss == "squared" else 1.0)
    matrices = _ROOM * _MATRICES * 8 * D * D
    wide = (smooth or crawls) and D <= _WIDE and (per_row > _FULL * D or not scaled)
    return (wide or products <= most * entries) and (matrices < _ALWAYS or memory_limit(options.memory) >= matrices)


def is_scaled(options: TrainOptions, statistics: Statistics) -> bool:
    """Whether features are of similar size, as far as that is known: then several problems on the same rows (classes against the
    rest, a grid) are best trained in the same passes, as columns, else one after another where `choose` takes Newton's method."""
    return options.scale != "none" or statistics.max_abs_value <= _SCALED


def job_class(options: TrainOptions) -> type[Job]:
    """The Job class: by problem for linear solvers, unless it is trained as columns; else by kind or family."""
    record = options.record
    other = options.kind if record.family == "linear" else (*record.kinds, record.family)[0]
    module, attribute = _JOBS["columns" if options.in_columns else other]
    return resolve_name(f"{module}:{attribute}")
