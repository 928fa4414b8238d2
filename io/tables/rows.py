"""Turns batches of a table into Chunks: features, labels, groups and weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamcut.errors import BadInputError
from streamcut.foundation.chunk import Chunk
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.recipe.table import BOOLEAN, BYTES, INTEGER, NUMBER, TEXT, TIME
from streamcut.io.sources.canonical import checked_weights, narrowed
from streamcut.io.sources.labels import SKIP
from streamcut.io.sources.source import Place
from streamcut.io.tables.arrow import floats_of, kind_of, without
from streamcut.io.tables.encoder import Encoder
from streamcut.io.tables.labels import LabelReader

if TYPE_CHECKING:
    from streamcut.io.conversion.options import ConvertOptions

_NOT = {  # description of values that are not of a type
    BOOLEAN: "neither true nor false",
    INTEGER: "no numbers",
    NUMBER: "no numbers",
    TIME: "no times of the years 1 to 9999",
    TEXT: "no texts",
    BYTES: "no bytes",
}


def unusual(recipe: Recipe, unseen: Mapping[str, int], unfit: Mapping[str, int]) -> Counter[str]:
    """{remark: count} from the counts {column: values without a category} and {column: values not of its type}."""
    if not unseen and not unfit:
        return Counter()
    assert recipe.table is not None
    types = {column.name: column.type for column in recipe.table.columns}
    counts = Counter({f"values of {name} that training did not see": count for name, count in unseen.items()})
    counts.update({f"values of {name} that are {_NOT[types[name] or TIME]}": count for name, count in unfit.items()})
    return counts


class RowMaker:
    """Makes rows by `recipe`, and by the options of `convert` on values and missing labels.

    learn     categories that the recipe lacks, and labels that are words, are numbered as they occur, within `room` of memory
    labels    whether labels are read; otherwise they are 0
    keep      columns to return along with the rows
    in_order  numbers are assigned in order of occurrence: one thread has to make all batches, from the first row on
    """

    def __init__(
        self,
        recipe: Recipe,
        options: ConvertOptions,
        *,
        learn: bool = False,
        room: int | None = None,
        labels: bool = True,
        keep: Sequence[str] = (),
    ) -> None:
        assert recipe.table is not None
        self.recipe, self.table, rule = recipe, recipe.table, recipe.labels
        self.encoder = Encoder(recipe, learn=learn, most=options.max_categories, room=room if learn else None)
        self.reads_labels = labels and not rule.none
        self._labels = LabelReader(rule, learn=learn and rule.learned and not rule.words)
        self.in_order = self.encoder.learns or (self._labels.learn and self.reads_labels)
        self.keep = list(keep)
        self._skip = options.missing_labels == "skip"
        self._dtype = np.dtype(options.dtype or recipe.dtype or "float64")

    @property
    def columns(self) -> list[str]:
        """The columns it needs, each once."""
        others = [self.recipe.labels.column if self.reads_labels else None, self.table.qid, self.table.weight]
        return list(dict.fromkeys([*self.encoder.columns, *(name for name in others if name is not None), *self.keep]))

    def finished_recipe(self) -> Recipe:
        """The recipe with all that was learned."""
        return replace(self.recipe, names=self.encoder.names(), labels=self._labels.rule)

    def chunk(
        self, batch: pa.RecordBatch, file: str, row: int, first_row: int
    ) -> tuple[Chunk, Counter[str], pa.RecordBatch | None, np.ndarray | None]:
        """(rows, unusual values counted, the columns to keep, the row numbers in `batch`, None: all) of `batch`.

        Its first row is number `row` of `file` and `first_row` overall.
        Raises BadInputError naming the file, the row and the column.
        """
        n_rows, counters, kept = batch.num_rows, Counter[str](), batch.select(self.keep)
        batch = without(batch, self.table.nulls)
        rows = np.arange(row, row + n_rows)
        if self.reads_labels:
            batch, rows = self._labelled(batch, file, rows, counters)
        place = Place(file, rows, first_row)
        encoded = self.encoder.encode(batch, place)
        counters.update(unusual(self.recipe, encoded.unseen, encoded.unfit))
        y = np.zeros(batch.num_rows)
        if self.reads_labels:
            y = self._labels.read(batch.column(self.recipe.labels.column), place)
        chunk = Chunk(
            encoded.indptr,
            encoded.indices,
            self._values(encoded.data, encoded.indptr, place),
            y,
            self._qid(batch, place),
            self._weight(batch, place),
            first_row,
        )
        labelled = None if len(rows) == n_rows else rows - row
        kept = kept if labelled is None else kept.take(pa.array(labelled))
        return chunk, counters, kept if self.keep else None, labelled

    def _labelled(
        self, batch: pa.RecordBatch, file: str, rows: np.ndarray, counters: Counter[str]
    ) -> tuple[pa.RecordBatch, np.ndarray]:
        """Only the rows that have a label."""
        missing = self._labels.missing(batch.column(self.recipe.labels.column))
        if not missing.any():
            return batch, rows
        if not self._skip:
            raise BadInputError(
                f"{file}: row {int(rows[np.argmax(missing)])} (0-based), column {self.recipe.labels.column!r}: the label is "
                f"missing{SKIP}"
            )
        counters["rows without label left out"] += int(missing.sum())
        return batch.filter(pa.array(~missing)), rows[~missing]

    def _values(self, data: np.ndarray | None, indptr: np.ndarray, place: Place) -> np.ndarray | None:
        if data is None or data.dtype == self._dtype:
            return data
        return narrowed(data, self._dtype, lambda bad: place(int(np.searchsorted(indptr, bad, side="right")) - 1))

    def _qid(self, batch: pa.RecordBatch, place: Place) -> np.ndarray | None:
        if self.table.qid is None:
            return None
        column = batch.column(self.table.qid)
        if not pa.types.is_integer(column.type) or column.null_count or (pc.min(column).as_py() or 0) < 0:
            raise BadInputError(f"{place.file}: column {self.table.qid!r} (--qid) holds more than whole numbers from 0 on")
        return column.cast(pa.int64()).to_numpy(zero_copy_only=False)

    def _weight(self, batch: pa.RecordBatch, place: Place) -> np.ndarray | None:
        if self.table.weight is None:
            return None
        column = batch.column(self.table.weight)
        if kind_of(column.type) != "number":
            raise BadInputError(f"{place.file}: column {self.table.weight!r} (--weights) holds {column.type}, not numbers")
        return checked_weights(floats_of(column), lambda row: f"{place(row)}, column {self.table.weight!r}")
