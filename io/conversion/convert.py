"""`convert`: rows of any source into a store: checked, in the requested order, in bounded memory, resumable."""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from streamcut.errors import BadInputError, MemoryBudgetError
from streamcut.foundation.shown import Shown, warn
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.conversion.plan import ConvertPlan
from streamcut.io.conversion.prepared import prepared
from streamcut.io.conversion.progress import Progress, Reporter
from streamcut.io.conversion.work import Target, Work
from streamcut.io.manifest import Statistics
from streamcut.io.opening import open_dataset
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.sources.lazy import framed
from streamcut.io.sources.source import describe
from streamcut.io.unchanged import ChangedInputError

log = logging.getLogger(__name__)

_USUAL = {"files", "rows", "lines"}  # counters of nothing unusual


@dataclass(frozen=True, slots=True, repr=False)
class ConvertReport(Shown):
    """What was written.

    outputs      {path: statistics}
    counters     {what was unusual in the input: how often}, nonzero counts only
    rows         read by this run; `resumed_rows` were stored by earlier runs
    bytes_in     of the input files, None for standard input and URLs
    rejects      the first 20 lines that were left out, each with its place and the reason
    label_words  ((label, word), …) where labels are words
    """

    outputs: dict[str, Statistics]
    counters: dict[str, int]
    rows: int
    resumed_rows: int
    bytes_in: int | None
    bytes_out: int
    seconds: float
    plan: ConvertPlan
    rejects: list[str] = field(default_factory=list)
    complete_before: list[str] = field(default_factory=list)
    label_words: tuple[tuple[float, str], ...] = ()

    def shown(self) -> dict[str, Any]:
        first = next(iter(self.outputs.values()), None)
        sizes = {} if first is None else {"n_rows": first.n_rows, "n_features": first.n_features, "nnz": first.nnz}
        return {"outputs": ", ".join(self.outputs), **sizes, **self.counters, "seconds": round(self.seconds, 2)}


def convert(
    inputs: Any,
    output: str | os.PathLike,
    *,
    progress: Callable[[Progress], None] | None = None,
    on_recipe: Callable[[Recipe], None] | None = None,
    on_told: Callable[[str], None] | None = warn,
    **options,
) -> ConvertReport:
    """See streamcut.api."""
    report, learned = _converted(framed(inputs), output, options, progress, on_recipe, on_told)
    if on_told is not None and learned:
        from streamcut.io.tables.remarks import remarks

        for sentence in [said for path in report.outputs for said in remarks(open_dataset(path))]:
            on_told(sentence)
    return report


def _converted(
    inputs: Any,
    output: str | os.PathLike,
    options: dict[str, Any],
    progress: Callable[[Progress], None] | None,
    on_recipe: Callable[[Recipe], None] | None,
    on_told: Callable[[str], None] | None,
) -> tuple[ConvertReport, bool]:
    """(report, whether the recipe of a table was learned); what was needed on the way, such as a dictionary, is free again."""
    began = time.monotonic()
    given = prepared(inputs, output, options)
    settings, outputs, plan, source = given.settings, given.outputs, given.plan, given.source
    described = [*source.identity["inputs"], *(describe(path) for path in given.side_files)]
    record = {**_lasting_options(settings, plan, given.kind), "inputs": [list(found) for found in described]}
    if on_told is not None:
        for sentence in given.source.told:
            on_told(sentence)
    if on_recipe is not None and (recipe := source.recipe()) is not None:
        on_recipe(recipe)
    n_features = 1 << settings.hash_bits if settings.hash_bits else getattr(source, "n_features", settings.n_features)
    with ExitStack() as stack:
        targets = []
        for path in outputs:
            targets.append(Target(path, record, plan, n_features, settings))
            stack.callback(targets[-1].close)
        work = Work(given, targets, record, Reporter(progress, source, began))
        try:
            work.run()
        except (BadInputError, MemoryBudgetError) as error:
            useless = isinstance(error, ChangedInputError)  # a mixture of old and new rows
            for target in targets:
                target.abandon(rows_too=useless)
            raise
    sizes, recipe = [size for _, size, _ in source.identity["inputs"]], source.recipe()
    report = ConvertReport(
        outputs={target.path: target.statistics for target in targets if target.statistics is not None},
        counters={name: count for name, count in targets[0].counters.items() if count and name not in _USUAL},
        rows=work.read,
        resumed_rows=sum(target.stored for target in targets),
        bytes_in=None if None in sizes else sum(sizes),
        bytes_out=sum(target.stored_bytes() for target in targets),
        seconds=time.monotonic() - began,
        plan=plan,
        rejects=work.refused or targets[0].refused,
        complete_before=[target.path for target in targets if target.complete],
        label_words=() if recipe is None else tuple(sorted(recipe.labels.names.items())),
    )
    for path, found in report.outputs.items():
        log.info("%s: %s rows, %s features, %s entries", path, f"{found.n_rows:,}", f"{found.n_features:,}", f"{found.nnz:,}")
        if len(sizes) > 1 and set(found.labels or ()) == {-1.0, 0.0, 1.0} and on_told is not None:
            on_told("labels are -1, 0 and 1: three classes; if 0 and -1 are one, make them the same in all inputs")
    return report, recipe is not None and recipe.table is not None and settings.recipe is None


def _lasting_options(settings: ConvertOptions, plan: ConvertPlan, kind: str) -> dict:
    """The options that determine the content of the store: a conversion resumes only with the same."""
    passing = {"memory", "threads", "scratch", "resume", "force", "split_output", "backend", "wide_index", "max_line_bytes"}
    passing |= {"header"} if settings.header else set()
    given = replace(settings, recipe=None, feature_names=None)
    kept = {name: value for name, value in asdict(given).items() if name not in passing and value not in (None, (), [])}
    if settings.feature_names is not None:
        kept["feature_names"] = hashlib.sha256("\n".join(settings.feature_names).encode()).hexdigest()
    if settings.recipe is not None:
        kept["recipe"] = hashlib.sha256(settings.recipe.to_json()).hexdigest()
    return {**kept, "format": kind, "shard_nnz": plan.shard_nnz, "features": plan.features}
