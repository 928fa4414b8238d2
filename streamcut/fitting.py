"""`fit`: from a table, text or a store to a model, with all the steps that a statistician would take.

Rows to measure on are held out at random, by groups, or the latest (`split`); the measures without any feature are the
baseline that a model has to beat."""

from __future__ import annotations

import math
import os
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from streamcut.config import CheckpointOptions, TrainOptions
from streamcut.data.by_data import for_data, with_free_intercept, with_probabilities
from streamcut.data.datasets import stored, with_origin
from streamcut.data.inputs import opened
from streamcut.data.row_columns import files_of, keys_of_groups, times_of_rows, with_id
from streamcut.errors import UsageError, spelled
from streamcut.foundation.interrupts import first_interrupt_asks
from streamcut.foundation.shown import Shown, visible, warn, word
from streamcut.foundation.units import format_number, part_of
from streamcut.grids.search import Search
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.dataset import Dataset, first_rows
from streamcut.io.formats.finding import find_files
from streamcut.io.formats.registry import FORMATS, FRAME, STORE
from streamcut.io.row_view import HeldOut, RowView, drawn_groups, held_out_view
from streamcut.io.sources.lazy import framed, is_frame
from streamcut.io.tables.files import TableFile
from streamcut.io.tables.remarks import remarks
from streamcut.measures.classes import LEAST as LEAST_PROBABILITY
from streamcut.models.certificate import Certificate
from streamcut.models.checkpoint import below
from streamcut.models.model import Model
from streamcut.options.training import SINGLE
from streamcut.prediction import Answers, predict
from streamcut.reports.weights import Weight, greatest
from streamcut.solvers.progress import Observer
from streamcut.training import checked, train
from streamcut.tuning import values_of

FIRST, LEAST, MOST = (0.01, 0.1, 1.0), 1e-4, 1e3  # values of C tried first, and the range of further ones
_SAID = ("accuracy", "roc_auc", "macro_f1", "r2", "root_mean_squared_error")  # in addition to the measure that C was chosen by
_FEW_HELD = 100  # held-out rows; with fewer there is a remark
_CHOSEN = ("C", "validation", "warm_start", "kernel", "nystroem", "fourier")  # options of `train` that `fit` sets itself


@dataclass(frozen=True, eq=False, repr=False)
class Fitted(Shown):
    """A model of all rows, and the measures of a model with the same options on rows that it had not seen.

    model       trained with `C` on all rows
    C           the best on the held-out rows of those in `tried`: {C: value of `measure`}
    measures    all of streamcut.evaluate on the held-out rows, for the model with that C
    baseline    {measure: its value without any feature}: predicting the shares of the labels, or their mean
    shares      {label, a word or a number: its share of all rows}; empty for a regression
    rows        (rows trained on to choose C, rows held out); how: which rows were held out
    remarks     sentences about possible mistakes in the data
    store       path of the store made of the data, if kept, else None
    """

    model: Model
    C: float
    measure: str
    tried: dict[float, float]
    measures: dict[str, Any]
    baseline: dict[str, float]
    shares: dict[str | float, float]
    rows: tuple[int, int]
    how: str
    remarks: list[str] = field(default_factory=list)
    store: str | None = None
    seconds: float = 0.0

    @property
    def certificate(self) -> Certificate | None:
        """The certificate of `model`; None where its solver gives none, or one for each class."""
        return self.model.certificate if len(self.model.certificates) == 1 else None

    @property
    def largest(self) -> list[Weight]:
        """The weights largest in magnitude, with feature names: ten, or three for each of the first eight classes."""
        return [weight for weights in greatest(self.model, top=10, several=3).values() for weight in weights]

    def predict(self, rows: object) -> Answers:
        """Labels, or words, of `rows`: all that streamcut.predict takes, including one row as a dict; raises as that does."""
        return cast(Answers, predict(self.model, rows))

    def predict_proba(self, rows: object) -> Answers:
        """Probabilities of `rows`, float64: (n,) of the positive label, or (n, classes). Raises as streamcut.predict does."""
        return cast(Answers, predict(self.model, rows, answer="probabilities"))

    def shown(self) -> dict[str, object]:
        base = self.baseline.get(self.measure)
        held = {self.measure: self.measures[self.measure], f"{self.measure} without features": base}
        return {"model": type(self.model).__name__, "C": self.C, **held, "converged": self.model.converged}

    def in_words(self) -> str:
        """A readable summary: rows, labels, measures next to those without features, certificate, weights, remarks."""
        return "\n".join(map(visible, self._lines()))

    def _lines(self) -> list[str]:
        training, held = self.rows
        out = [f"{training + held:,} rows, of which {held:,} were held out to choose C ({self.how})."]
        if self.shares:
            common = sorted(self.shares.items(), key=lambda item: -item[1])
            said = ", ".join(f"{word(label)} {100 * share:.3g} %" for label, share in common[:5])
            out.append(f"Labels: {said}{f' and {len(common) - 5} more' if len(common) > 5 else ''}.")
        out.append("")
        names = [self.measure, *(name for name in _SAID if name != self.measure and name in self.measures)]
        lines = [["On rows held out", "this model", "without features"]]
        for name in names:
            base = self.baseline.get(name)
            lines.append(
                [name.replace("_", " "), format_number(self.measures[name]), "" if base is None else format_number(base)]
            )
        widths = [max(len(line[k]) for line in lines) for k in range(3)]
        out += [f"{name:<{widths[0]}}  {value:>{widths[1]}}  {base:>{widths[2]}}".rstrip() for name, value, base in lines]
        tried = ", ".join(f"{C:g}: {format_number(value)}" for C, value in sorted(self.tried.items()))
        out += [f"C = {self.C:g} was best ({tried}); with it all rows were trained on.", "", self.model.in_words()]
        largest = self.largest
        if largest:
            out += ["", "Largest weights:"]
            several, wide = self.model.scores_per_row > 1, max(len(weight.shown) for weight in largest)
            out += [
                f"  {weight.shown:<{wide}}  {weight.weight:+.4g}{f'  ({word(weight.label)})' if several else ''}"
                for weight in largest
            ]
        return [*out, *([""] if self.remarks else []), *(f"Note: {remark}" for remark in self.remarks)]


def fit(
    data: object, label: str | None, *, validation: str | float, group_column: str | None, time_column: str | None,
    store: str | os.PathLike | None, convert: Mapping[str, object] | None, C: float | Sequence[float] | None, measure: str | None,
    on_told: Callable[[str], None] | None, on_iteration: Observer | None, checkpoint: CheckpointOptions | str | None,
    stop: Callable[[], bool] | None, **options: Any,
) -> Fitted:  # fmt: skip
    """See streamcut.api."""
    began, tell = clock.monotonic(), on_told or (lambda sentence: None)
    if taken := sorted(set(_CHOSEN) & set(options)):
        raise UsageError(f"{taken[0]}: `fit` does not take it; see `streamcut.train`")
    chosen, _ = checked(options)
    share = share_of(validation)
    if group_column is not None and time_column is not None:
        raise UsageError("group_column and time_column: give one of them")
    checkpoint = CheckpointOptions.of(checkpoint)
    if checkpoint is not None and store is None:
        raise UsageError("--checkpoint: a run can resume only with the same rows; say where to keep the store (--store)")
    with ExitStack() as held:
        asked = stop or held.enter_context(first_interrupt_asks())
        resume = checkpoint is not None and checkpoint.resume
        ready = _ready(data, label, store, {**(convert or {})}, group_column, chosen, resume)
        whole, files, guesses, made_of = held.enter_context(ready)
        by_column = "group_column" if group_column else "time_column"
        if (group_column or time_column) and not files:
            raise UsageError(f"{by_column}: a column of a table; this data has none by that name")
        if (group_column or time_column) and (convert or {}).get("missing_labels") == "skip":
            raise UsageError(f"{by_column}: leave rows without a label out yourself, then missing_labels")
        for sentence in guesses:
            tell(sentence)
        if asked():
            raise KeyboardInterrupt("stopped before training")
        training, validated = split(whole, files, share, chosen.seed, group_column, time_column)
        chosen = with_probabilities(with_free_intercept(for_data(chosen, whole)))
        options |= {"task": chosen.task, "intercept": chosen.intercept, "loss": chosen.loss}
        positive = chosen.positive_label if chosen.task in ("binary", "auto") else None
        if positive is None and chosen.task in ("binary", "auto"):
            positive = max(whole.manifest.statistics.labels or [1.0])
        more = [] if files else [spelled(sentence) for sentence in remarks(whole)]
        if validated.manifest.statistics.n_rows < _FEW_HELD:
            few = validated.manifest.statistics.n_rows
            more.append(f"{few} rows are held out: measures may be inaccurate; `train --folds 5` uses all rows")
        for sentence in more:
            tell(sentence)
        search, tried = _searched(training, validated, C, measure, checkpoint, tell, options, on_iteration, asked)
        if asked():
            raise KeyboardInterrupt("stopped before the last training")
        best, selected = search.best.options["C"], search.models[tuple(search.best.options.values())]
        search.models.clear()
        saving = checkpoint and replace(checkpoint, directory=below(checkpoint.directory, "all"))
        if chosen.task in (*SINGLE, "auto") and not chosen.distributed:
            options["warm_start"] = selected
        model = train(whole, C=best, **options, on_iteration=on_iteration, checkpoint=saving, stop=asked)
        model = with_origin(model, None if store is not None else made_of)
        if stop is None and asked():
            warn("training was interrupted; the model is the best so far")
        others = {"C", "fold", "passes", "seconds", *selected.result()}  # than measures
        measures = next({name: line[name] for name in line if name not in others} for line in search.table if line["C"] == best)
        base = without_features(training, validated, chosen.task, positive)
        statistics = training.manifest.statistics, validated.manifest.statistics
        by_label = {} if chosen.task == "regression" else {model.label_word(label): part for label, part in shares(whole).items()}
        how = f"by {group_column}" if group_column else f"the latest by {time_column}" if time_column else "at random"
        return Fitted(
            model, best, search.best.measure, tried, measures, base, by_label,
            (statistics[0].n_rows, statistics[1].n_rows), how, [*guesses, *more],
            None if store is None else os.fspath(store), clock.monotonic() - began,
        )  # fmt: skip


def _searched(
    training: Dataset, validated: Dataset, C: float | Sequence[float] | None, measure: str | None,
    checkpoint: CheckpointOptions | None, tell: Callable[[str], None], options: dict[str, Any], on_iteration: Observer | None,
    stop: Callable[[], bool],
) -> tuple[Search, dict[float, float]]:  # fmt: skip
    """(the search with the best C, {C: its measure}). While the best is at an end of the grid, the next value there is tried."""
    Cs: Sequence[float] = FIRST if C is None else [C] if isinstance(C, int | float) else list(C)
    best, tried = None, dict[float, float]()
    while Cs:
        saving = checkpoint and replace(checkpoint, directory=below(checkpoint.directory, f"C={min(Cs):g}"))
        search = Search(
            training, values_of("C", Cs), [{}], options, measure, on_iteration=on_iteration, checkpoint=saving, stop=stop
        )
        search.on_validation(validated)
        for cell in search.cells.values():
            tried[cell.options["C"]] = cell.mean
            tell(f"C {cell.options['C']:g}: {cell.measure.replace('_', ' ')} {cell.mean:.6g} on rows held out")
        if best is None or search.best.merit > best.best.merit:
            best = search
        at = best.best.options["C"]
        ends = {at * 10} if at == max(tried) else {at / 10} if at == min(tried) else set()
        Cs = [float(f"{end:.6g}") for end in ends if LEAST <= end <= MOST] if C is None and not stop() else []
    assert best is not None
    return best, tried


@contextmanager
def _ready(
    data: object, label: str | None, store: str | os.PathLike | None, more: dict[str, Any], group: str | None,
    chosen: TrainOptions, resume: bool,
) -> Iterator[tuple[Dataset, Sequence[TableFile], list[str], dict[str, object] | None]]:  # fmt: skip
    """(the rows of `data`, converted to a store unless they are in one or are arrays; the files of a table that they were made
    of, remarks, and their origin)."""
    data, wanted = framed(data), more.get("format", "auto")
    kind, paths = FRAME.name if is_frame(data) else STORE.name, list[str]()
    if isinstance(data, str | os.PathLike):
        kind, paths = find_files([os.fspath(data)], wanted)
    if kind == STORE.name:
        if label is not None or more or store is not None:
            said = "label" if label is not None else "store" if store is not None else "convert"
            raise UsageError(f"{said}: a store and arrays have their labels and features already; leave it out")
        yield opened(data), (), [], None
        return
    if label is not None and FORMATS[kind].labels == "rows" and not FORMATS[kind].is_table:
        raise UsageError(f"label: rows of {kind} have their labels in them; leave it out")
    if paths == ["-"]:
        raise UsageError("-: `fit` reads its data more than once; save it to a file")
    files = files_of(data, wanted, ConvertOptions(**more).spelling)
    if files and group is not None:
        more = with_id(more, group)
    guesses: list[str] = []
    resume &= store is not None
    made = stored(data, label, more, chosen.scratch, chosen.memory, place=store, on_told=guesses.append, resume=resume)
    with made as (rows, made_of):
        yield opened(rows), files, [spelled(sentence) for sentence in guesses], made_of


def without_features(training: Dataset, validation: Dataset, task: str, positive: float | None) -> dict[str, float]:
    """Measures on `validation` of the model that knows only the labels of `training`, by the names of streamcut.evaluate.

    Two labels (one is `positive`) and classes: their shares as probabilities, and the most frequent one as the answer.
    Regression: the mean. Row weights count. Empty for other tasks.
    """
    if task == "regression":
        (rows, total, _), (weight, linear, squares) = _moments(training), _moments(validation)
        mean = total / rows
        mse = max(squares - 2 * mean * linear + mean * mean * weight, 0.0) / weight
        spread = squares / weight - (linear / weight) ** 2
        explained = {"r2": 1.0 - mse / spread} if spread > 0.0 else {}
        return {**explained, "mean_squared_error": mse, "root_mean_squared_error": math.sqrt(mse)}
    if task not in ("binary", "auto", "multiclass"):
        return {}
    prior, there = shares(training, positive), shares(validation, positive)
    most = max(prior, key=lambda label: prior[label])
    loss = -sum(share * math.log(max(prior.get(label, 0.0), LEAST_PROBABILITY)) for label, share in there.items())
    return {"log_loss": loss, "accuracy": there.get(most, 0.0)}


def shares(data: Dataset, positive: float | None = None) -> dict[float, float]:
    """{label: its share of the rows by weight}; with a `positive` label all others are merged as nan."""
    statistics = data.manifest.statistics
    counts = dict(statistics.label_weights or statistics.labels or {})
    if positive is not None:
        counts = {positive: counts.get(positive, 0), math.nan: sum(count for label, count in counts.items() if label != positive)}
    total = sum(counts.values())
    return {label: count / total for label, count in counts.items()} if total else {}


def _moments(data: Dataset) -> tuple[float, float, float]:
    """Σ u, Σ u y, Σ u y²."""
    sums, buffers = np.zeros(3), data.buffers()
    for shard in range(len(data.manifest.shards)):
        chunk = data.read(shard, buffers)
        u = np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
        sums += [u.sum(), u @ chunk.y, u @ np.square(chunk.y)]
    return float(sums[0]), float(sums[1]), float(sums[2])


def share_of(validation: object) -> float:
    """The share of the rows that `validation` ("20%", 0.2) specifies. Raises UsageError."""
    share = part_of(validation) if isinstance(validation, str) else validation
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 < share < 1.0:
        raise UsageError(f"validation: {validation!r} is not a share of the rows; write for example '20%'")
    return float(share)


def split(
    data: Dataset, files: Sequence[TableFile], share: float, seed: int, group: str | None, time: str | None
) -> tuple[RowView, RowView]:
    """(rows to train on, rows held out) of `data`, which was made from the table `files`, row for row.

    group   rows with the same value of this column stay together; `time`: the latest rows by this column are held out
    """
    if group is not None:
        held = HeldOut(which=drawn_groups(keys_of_groups(files, group), share, seed))
    elif time is not None:
        held = HeldOut(which=_latest(files, time, share))
    else:
        statistics = data.manifest.statistics
        held = HeldOut(share, seed, grouped=statistics.groups is not None, rows=statistics.n_rows)
    training, validation = held_out_view(data, held)
    labels, there = training.manifest.statistics.labels, validation.manifest.statistics.labels
    alone = set(there) - set(labels) if labels and there else set()
    if not alone or not all(label.is_integer() for label in alone) or held.grouped:
        return training, validation
    return held_out_view(data, HeldOut(which=_without(data, held, alone)))  # a class must be in training to be measured


def _without(data: Dataset, held: HeldOut, labels: set[float]) -> np.ndarray:
    """Which rows are held out, bool (n), except those with some labels."""
    which, buffers = [], data.buffers()
    for shard, first in enumerate(first_rows(data.manifest)[:-1]):
        chunk = data.read(shard, buffers)
        which.append((held.of(chunk, first) == 0) & ~np.isin(chunk.y, list(labels)))
    return np.concatenate(which)


def _latest(files: Sequence[TableFile], column: str, share: float) -> np.ndarray:
    """Which rows are held out, bool (n): the latest by `column`; equal times stay together, rows without one are not held out."""
    times, ordered = times_of_rows(files, column)
    begin = ordered[min(len(ordered) - 1, int(np.ceil((1.0 - share) * len(ordered))))]
    return times >= begin if begin > ordered[0] else times > begin
