"""Scores and labels for streamed rows: chunk by chunk, in memory bounded by the model and one chunk."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from streamcut.data.inputs import Raw, rows_of
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.ceiling import Ceiling, RowBytes
from streamcut.foundation.chunk import Chunk, concatenate, copied, group_starts, is_sparse
from streamcut.foundation.shown import unknown, warn
from streamcut.io.manifest import Manifest
from streamcut.io.sources.lazy import framed, is_frame
from streamcut.models.files import as_model
from streamcut.models.model import Model

if TYPE_CHECKING:
    from scipy.sparse import sparray

    from streamcut.certified import CertifiedAnswers, Certifier

ANSWERS = {  # the columns of each kind of answer
    "labels": ("label",),
    "scores": ("score",),
    "probabilities": ("probability",),
    "certified": ("label", "proved", "low", "high"),
}
_FEW = 1 << 20  # numbers
_FEW_ROWS = 16  # as dicts: Arrow is faster with more
SCORES_AT_ONCE = 1 << 20  # bounds the memory for a shard of very many short rows: 8 bytes each for the arrays below


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
) -> Answers | CertifiedAnswers:
    """See streamcut.api."""
    if answer not in ANSWERS:
        raise UsageError(f"answer: {unknown(answer, ANSWERS)}")
    if trained_on is not None and answer != "certified":
        raise UsageError("trained_on: only certified predictions read the training rows; say answer='certified'")
    ceiling = Ceiling(memory) if memory != "auto" or isinstance(model, str | os.PathLike) or _many(data) else None
    model = as_model(model, lambda size: None if ceiling is None else ceiling.expect_model(size))
    reading = raw or Raw(index_base=index_base, labelled=False)
    reading.strict |= strict
    answers: Answers | CertifiedAnswers | None = None if answer == "certified" else _of_few(model, data, answer, reading)
    if answers is None:
        certifier = None
        if answer == "certified":
            from streamcut.certified import Certifier  # which others need not load

            certifier = Certifier(model, trained_on, memory)
        answers = _predicted(model, framed(data), answer, ignore_extra_features, reading, ceiling, certifier)
    if isinstance(answers, Answers):
        answers.unseen = reading.unseen
    if ceiling is not None:
        ceiling.keep()
    if raw is None:
        warn_of(reading.unseen)
    return answers


def as_rows(model: Model, data: object, ignore_extra_features: bool) -> object:
    """An array as rows with dummy labels; anything else unchanged. Raises BadInputError for another width."""
    if not _is_array(model, data):
        return data
    X = data if _shaped(data) else np.atleast_2d(np.asarray(data, np.float64))
    width = X.shape[1] if len(X.shape) == 2 else -1
    if width < model.n_features or (width > model.n_features and not ignore_extra_features):
        raise BadInputError(f"X has shape {X.shape}, but the model has {model.n_features} features")
    return X, np.zeros(X.shape[0])


def _shaped(data: object) -> TypeGuard[np.ndarray | sparray]:
    """Whether `data` is an array or a sparse matrix, of whatever library."""
    return hasattr(data, "shape")


def _is_array(model: Model, data: object) -> bool:
    """Whether `data` is an array of features, and no frame that the recipe of `model` makes features of."""
    by_recipe = is_frame(data) and model.recipe is not None and model.recipe.table is not None
    return not by_recipe and (_shaped(data) or isinstance(data, list))


class Answers(np.ndarray):
    """The predictions for rows: an array, and `unseen`, {what did not fit the model's recipe: count}."""

    unseen: Mapping[str, int] = MappingProxyType({})

    def __array_finalize__(self, source: object) -> None:
        self.unseen = source.unseen if isinstance(source, Answers) else Answers.unseen

    def __array_wrap__(self, array: np.ndarray, context: object = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else np.asarray(array)  # results computed from answers are plain arrays


def warn_of(unseen: Mapping[str, int]) -> None:
    """Warn of anything that did not fit the recipe of a model."""
    if unseen:
        said = "; ".join(f"{what}: {count:,}" for what, count in sorted(unseen.items()))
        warn(f"{said} (strict=True refuses such rows)")


def _many(data: object) -> bool:
    """Whether `data` is more than a few rows in memory, for which `auto` need not be checked."""
    return not (isinstance(data, list | Mapping) or (_shaped(data) and math.prod(data.shape) < _FEW))


def _of_few(model: Model, data: Any, output: str, raw: Raw) -> Answers | None:
    """Answers for a few rows as dicts or a frame, without Arrow and compiled code; None: take the general path."""
    if model.recipe is None or model.whole_groups or raw.labelled or raw.keep or not (is_frame(data) or _are_dicts(data)):
        return None
    from streamcut.io.tables import few  # which loads Arrow

    rows = few.few_dicts(data, _FEW_ROWS) if is_frame(data) else [data] if isinstance(data, Mapping) else data
    if rows is None:
        return None
    encoder = few.few_encoder(model.recipe)
    encoded = None if encoder is None else encoder.encoded(rows)
    if encoded is None or any(len(features) and features[-1] >= model.n_features for features, _ in encoded.rows):
        return None
    scores = model.score_few(list(encoded.rows))
    if scores is None or not np.isfinite(scores).all():
        return None
    if encoded.counters:
        raw.count(encoded.counters, "the rows")
    return _answered(model, scores, output).view(Answers)


def _answered(model: Model, scores: np.ndarray, output: str) -> np.ndarray:
    """The answers for rows with these scores, of which none depends on others."""
    if output == "labels":
        return np.asarray(model.in_label_words(model.labels_of(scores)))
    return np.asarray(scores if output == "scores" else model.probabilities_of(scores))


def _are_dicts(data: object) -> bool:
    """Whether `data` is one row as a dict, or a few."""
    if isinstance(data, Mapping):
        return True
    return isinstance(data, list) and 0 < len(data) <= _FEW_ROWS and all(isinstance(row, Mapping) for row in data)


def _predicted(
    model: Model, data: object, answer: str, ignore_extra: bool, raw: Raw, ceiling: Ceiling | None, certifier: Certifier | None
) -> Answers | CertifiedAnswers:
    k = model.scores_per_row
    # bytes a row: parts, then all, then words
    kept = {"labels": 40 + 24 * k, "scores": 16 * k, "probabilities": 64 * k, "certified": 96}[answer]
    if _is_array(model, data) and certifier is None:
        if ignore_extra and _shaped(data) and data.shape[1] > model.n_features:
            data = data[:, : model.n_features]
        if ceiling is not None:
            entries = rows = len(data) if isinstance(data, list) else 0
            if _shaped(data):
                entries, rows = data.nnz if is_sparse(data) else math.prod(data.shape), data.shape[0]
            ceiling.expect([(f"{rows:,} rows in CSR form", 20 * entries + 8 * rows), ("answers", (40 + kept) * rows)])
        return _answered(model, model.decision_function(data), answer).view(Answers)
    columns = ANSWERS[answer]
    data = data if certifier is None else as_rows(model, data, ignore_extra)
    chunks = scored_chunks(model, data, ignore_extra_features=ignore_extra, raw=raw, ceiling=ceiling, kept=(kept, kept))
    parts = zip(*answered(model, chunks, columns, certifier), strict=True)
    first, *others = [np.concatenate(column) for column in parts] or [np.empty(0)] * len(columns)
    first = np.asarray(model.in_label_words(first)) if columns[0] == "label" else first
    if certifier is None:
        return first.view(Answers)
    from streamcut.certified import CertifiedAnswers

    return CertifiedAnswers(first, *others)


def answered(
    model: Model, chunks: Iterator[tuple[Chunk, np.ndarray]], columns: Sequence[str], certifier: Certifier | None = None
) -> Iterator[tuple[np.ndarray, ...]]:
    """These `columns` of `scored_chunks`: label (n,), a number; score, probability (n,) or (n, classes); of what `certifier`
    proves also proved, low, high."""
    for chunk, scores in chunks:
        parts = [model.labels_of_chunk(chunk, scores)] if "label" in columns else []
        if certifier is not None:
            parts += certifier.answers(chunk, scores)
        elif "score" in columns:
            parts.append(scores)
        elif "probability" in columns:
            parts.append(np.asarray(model.probabilities_of(scores)))
        yield tuple(parts)


def scored_chunks(
    model: Model,
    data: object,
    *,
    ignore_extra_features: bool = False,
    raw: Raw | None = None,
    ceiling: Ceiling | None = None,
    kept: RowBytes = (0, 0),
) -> Iterator[tuple[Chunk, np.ndarray]]:
    """(rows, their scores float64) of `data`, at most SCORES_AT_ONCE at a time; both are valid until the next step.

    A model of whole groups gets each group whole, regardless of its size.

    data   as `streamcut.data.inputs.rows_of` takes it; `raw` says how raw input is read
    kept   bytes that the caller keeps of each row, (without weights, with them): they count under the `ceiling`

    Raises MemoryBudgetError where the ceiling cannot be kept, BadInputError for features that the model does not have, unless
    `ignore_extra_features`, and for scores that are not finite.
    """
    at_once = max(1, SCORES_AT_ONCE // model.scores_per_row)
    blocks = _groups if model.whole_groups else _blocks

    def expect(rows: Manifest | str) -> None:
        if ceiling is not None:
            ceiling.expect_rows(model, rows, kept, at_once)

    for rows in blocks(rows_of(data, model.recipe, raw or Raw(), expect), at_once):
        chunk = _within(rows, model.n_features, ignore_extra_features)
        scores = model.score_chunk(chunk)
        finite = np.isfinite(scores).reshape(chunk.n_rows, -1).all(axis=1)
        if not finite.all():
            row = chunk.first_row + int(np.argmin(finite))
            raise BadInputError(f"row {row} (0-based): its score is not finite; check its values")
        yield chunk, scores
        if ceiling is not None:
            ceiling.meet(chunk)


def _blocks(chunks: Iterator[Chunk], at_once: int) -> Iterator[Chunk]:
    """The rows of `chunks`, at most `at_once` per chunk."""
    for chunk in chunks:
        for start in range(0, chunk.n_rows, at_once):
            yield chunk.rows(start, min(start + at_once, chunk.n_rows))


def _groups(chunks: Iterator[Chunk], at_once: int) -> Iterator[Chunk]:
    """The rows of `chunks` in whole groups of equal qid, which may span chunks; at most `at_once`, or one group."""
    last: Chunk | None = None  # the last group so far
    for chunk in chunks:
        if chunk.qid is None:
            raise BadInputError("the rows have no qid, which tells the sequences apart")
        if chunk.n_rows == 0:
            continue
        starts = group_starts(chunk)
        if last is not None and last.qid is not None and last.qid[0] == chunk.qid[0]:
            last = concatenate([last, chunk.rows(0, int(starts[1]))])
            starts = starts[1:]
        if len(starts) == 1:
            continue
        if last is not None:
            yield last
        first = 0
        while first < len(starts) - 2:
            stop = int(np.searchsorted(starts, starts[first] + at_once, side="right")) - 1
            stop = min(max(stop, first + 1), len(starts) - 2)
            yield chunk.rows(int(starts[first]), int(starts[stop]))
            first = stop
        last = copied(chunk.rows(int(starts[-2]), int(starts[-1])))
    if last is not None:
        yield last


def _within(chunk: Chunk, n_features: int, ignore_extra: bool) -> Chunk:
    """`chunk` without features that the model lacks: the kernels check no bounds."""
    start, stop = int(chunk.indptr[0]), int(chunk.indptr[-1])
    indices = chunk.indices[start:stop]
    if not len(indices) or indices.max() < n_features:
        return chunk
    kept = indices < n_features
    if not ignore_extra:
        row = int(np.searchsorted(chunk.indptr, start + np.argmin(kept), side="right")) - 1
        raise BadInputError(
            f"row {chunk.first_row + row} (0-based) has feature {int(indices[np.argmin(kept)])} (0-based), but the model has "
            f"{n_features:,} features; leave such features out with --ignore-extra-features"
        )
    before = np.concatenate(([0], np.cumsum(kept, dtype=np.int64)))
    return replace(
        chunk,
        indptr=before[chunk.indptr - start],
        indices=indices[kept],
        data=None if chunk.data is None else chunk.data[start:stop][kept],
    )
