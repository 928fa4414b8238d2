"""`create`: a store from blocks of rows that a program makes one by one, in bounded memory."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sized
from typing import Self

import numpy as np

from streamcut.errors import BadInputError, UsageError
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.conversion.plan import make_plan
from streamcut.io.manifest import Statistics
from streamcut.io.recipe.recipe import LabelRule, Recipe
from streamcut.io.remote import is_url
from streamcut.io.sources.arrays import column_names, entries_of, matrix_of
from streamcut.io.sources.canonical import RawRows, RowRules, canonical
from streamcut.io.sources.labels import Labels, label_rule, labels_of
from streamcut.io.sources.lazy import blocks, is_lazy
from streamcut.io.sources.source import GroupCheck, expect_short
from streamcut.io.stores.files import expect_free, unfinished
from streamcut.io.stores.writer import StoreWriter


class NewStore:
    """The store `path` while it is written. Use as a context: the store exists when the context ends, and not before.

    Parameters
    ----------
    path : str or path
        Of the store; may be a URL of an object store.
    n_features : int, optional
        Number of features; by default that of the first block.
    labels : list of str or {str: number}, optional
        Words used as labels, numbered 0, 1, … (the last of two is the positive one); labels may then be words or numbers.
        By default words are numbered in order of appearance.
    feature_names : list of str, optional
        A name for each feature; by default the columns of data frames.
    dtype : "float32" or "float64", optional
        Of values; by default that of the blocks.
    duplicates : "error", "sum" or "last"
        What to do with a feature that occurs twice in a row.
    keep_zeros : bool
        Store entries whose value is 0.
    backend, shard_nnz, memory, threads
        As in `convert`. Blocks should be small compared with `memory`, which counts what this writer takes.
    resume : bool
        Continue an interrupted store, after a crash too: `n_rows` rows are stored; append those that follow.
        Rows with qid cannot be resumed.
    force : bool
        Replace an existing store of this name.

    If the context ends with an error, the rows stored so far (if any) stay, for `resume`.

    >>> import numpy as np
    >>> with streamcut.create("made.zarr", labels=["ham", "spam"]) as out:
    ...     for block in (np.eye(3), 1 - np.eye(3)):
    ...         out.append(block, ["ham", "spam", "ham"])
    >>> out.statistics.labels
    {0.0: 4, 1.0: 2}
    """

    def __init__(
        self,
        path: str | os.PathLike,
        n_features: int | None = None,
        *,
        labels: Iterable[str] | Mapping[str, float] | None = None,
        feature_names: Iterable[str] | None = None,
        dtype: str | None = None,
        duplicates: str = "error",
        keep_zeros: bool = False,
        backend: str = "zarr",
        shard_nnz: int | None = None,
        memory: int | str | None = None,
        threads: int = 2,
        resume: bool = False,
        force: bool = False,
    ) -> None:
        self.path = os.fspath(path)
        self.n_rows = 0
        self.statistics: Statistics | None = None
        self.counters: Counter[str] = Counter()
        self._options = ConvertOptions(
            n_features=n_features,
            dtype=dtype,
            duplicates=duplicates,
            keep_zeros=keep_zeros,
            backend=backend,
            shard_nnz=shard_nnz,
            memory=memory,
            threads=threads,
            resume=resume,
            force=force,
        )
        self._names = None if feature_names is None else tuple(map(str, feature_names))
        self._n_features = n_features if self._names is None else len(self._names)
        if n_features not in (None, self._n_features):
            raise UsageError(f"feature_names: {len(self._names or ()):,} names for {n_features:,} features")
        self._rule = label_rule(labels)
        self._labels = Labels(dict(self._rule.words), learn=labels is None)
        self._labelled: bool | None = None
        self._groups = GroupCheck()
        self._writer: StoreWriter | None = None
        self._row_bytes = 0
        self._inside = self._met_columns = False

    def __enter__(self) -> Self:
        expect_free(self.path, self._options.force)
        self._inside = True
        if self._options.resume and (earlier := unfinished(self.path)):
            self._open(earlier.get("n_features"), earlier)
        return self

    def append(self, X: object, y: Sized | None = None, *, qid: Sized | None = None, weight: Sized | None = None) -> None:
        """Add the rows of `X` (n × d: SciPy sparse of any format, an array, or a data frame of numbers; Dask's block by block).

        y            labels (n): numbers or words; None, for all blocks: unlabelled rows, to be scored only
        qid, weight  int and float (n): the group of each row (rows of a group are adjacent) and its weight

        Raises BadInputError naming the row, counted from the start of the first block, MemoryBudgetError for a longer one than
        `memory` leaves room for, DiskFullError, and UsageError outside the context.
        """
        if not self._inside:
            raise UsageError(f"{self.path}: rows are appended inside `with streamcut.create(…) as out:`")
        columns = {"y": y, "qid": qid, "weight": weight}
        if is_lazy(X):
            for rows, parts in blocks(X, columns):
                self.append(rows, **parts)
            return
        matrix, names = matrix_of(X), column_names(X)
        n, d = matrix.shape
        self._expect_columns(d, names)
        for name, column in columns.items():
            if column is not None and len(column) != n:
                raise BadInputError(f"{name} has {len(column)} values for {n} rows of X")
        if self._labelled not in (None, y is not None):
            raise BadInputError("some blocks have labels and others do not")
        self._labelled = y is not None
        if n == 0:
            return
        writer, options = self._writer or self._open(d, {}), self._options
        if qid is not None and writer.position is not None:
            raise UsageError(f"{self.path}: rows with a qid cannot be resumed; begin anew without resume")
        rules = RowRules(options.dtype, options.duplicates, options.keep_zeros, self._n_features)
        labels = np.zeros(n) if y is None else labels_of(y, self._labels, self.n_rows)
        groups, weights = (None if column is None else np.asarray(column) for column in (qid, weight))
        first = self.n_rows
        for part in entries_of(matrix):
            rows = slice(self.n_rows - first, self.n_rows - first + part.n_rows)
            per_row = (None if column is None else column[rows] for column in (labels, groups, weights))
            labelled = RawRows(part.indptr, part.indices, part.values, *per_row)
            for raw in labelled.pieces():
                expect_short(len(raw.indices), self._row_bytes, f"row {self.n_rows} (0-based)")
                chunk = canonical(raw, rules, self.counters, self.path, self.n_rows, self.n_rows)
                if chunk.qid is not None and (row := self._groups.first_repeat(chunk.qid)) is not None:
                    place = f"row {self.n_rows + row} (0-based)"
                    raise BadInputError(
                        f"{place}: qid {chunk.qid[row]} comes back after other rows; rows of a qid stand together"
                    )
                words = list(self._labels.rule.words)
                writer.append(chunk, {"words": words, "counters": dict(self.counters), "labelled": self._labelled})
                self.n_rows += chunk.n_rows

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._inside = False
        writer, self._writer = self._writer, None
        if writer is None:
            if kind is None:
                raise BadInputError(f"no rows to write into {self.path}")
            return
        try:
            if kind is None:
                rule = LabelRule(none=True) if self._labelled is False else self._labels.rule
                recipe = Recipe(dtype=self._options.dtype, duplicates=self._options.duplicates, labels=rule, names=self._names)
                source = {"made_from": {"inputs": []}, "counters": dict(+self.counters)}
                self.statistics = writer.finish(source, recipe).statistics
        finally:
            writer.abandon()

    def _open(self, n_features: int | None, earlier: dict) -> StoreWriter:
        """Begin, or continue a store begun with the options `earlier`: restore what the blocks before the crash determined."""
        options = self._options
        plan = make_plan(options, earlier, remote=is_url(self.path), n_features=n_features)
        self._row_bytes, self._n_features = plan.row_bytes, n_features
        identity = {"made_by": "create", "labels": [list(pair) for pair in self._rule.words], "features": plan.features}
        identity |= {"dtype": options.dtype, "duplicates": options.duplicates, "keep_zeros": options.keep_zeros}
        self._writer = writer = plan.writer(self.path, options, n_features, identity).__enter__()
        if (state := writer.position) is not None:
            self.n_rows = writer.seen = writer.n_rows
            self.counters, self._labelled = Counter(state["counters"]), state["labelled"]
            if not self._rule.words:
                self._labels = Labels(dict(state["words"]), learn=True)
            self._labels.numbers = not state["words"] if self._labelled and not self._rule.words else None
        return writer

    def _expect_columns(self, d: int, names: tuple[str, ...] | None) -> None:
        """Take the number and names of the features from the first block unless the caller named them."""
        if self._n_features is None:
            self._n_features = d
        if d != self._n_features:
            raise BadInputError(f"X has {d:,} columns, but the store has {self._n_features:,} features")
        if self._names is None and not self._met_columns:
            self._names = names
        elif names is not None and self._names is not None and names != self._names:
            other = next(k for k in range(d) if names[k] != self._names[k])
            raise BadInputError(f"column {other} (0-based) of X is {names[other]!r}, and was {self._names[other]!r}")
        self._met_columns = True
