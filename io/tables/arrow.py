"""Arrow columns in the form that kernels take: texts as bytes, numbers as float64, equivalent types as one type."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

NULLS = frozenset(  # spellings of a missing number, boolean or time in a text
    [*pcsv.ConvertOptions().null_values, "?", "None", "none", "NONE", "Null", "NAN", "Nan", "na", "<NA>", "NaT", "\\N"]
)
_FEW_ROWS = 1 << 12  # of a batch: copying longer columns takes longer than a call for each
_RARE = {dtype.id for dtype in (pa.dictionary(pa.int8(), pa.null()), pa.string_view(), pa.binary_view(), pa.float16())}
EXACT = 1 << 53  # whole numbers up to it are exact doubles


class ColumnTypeError(Exception):
    """A column of the wrong type for the recipe; the message names its type."""


class ValueOfRowError(Exception):
    """A value that no feature can have: (row in the column, its fault)."""

    def __init__(self, row: int, what: str) -> None:
        super().__init__(row, what)
        self.row, self.what = row, what


def kind_of(dtype: pa.DataType) -> str:
    """ "number", "text", "bool", "time", "bytes" or "other": the kind of a type. A dictionary has the kind of its values."""
    if pa.types.is_dictionary(dtype):
        return kind_of(dtype.value_type)
    if pa.types.is_boolean(dtype):
        return "bool"
    if pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_decimal(dtype):
        return "number"
    if pa.types.is_string(dtype) or pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype) or pa.types.is_null(dtype):
        return "text"
    if pa.types.is_timestamp(dtype) or pa.types.is_date(dtype) or pa.types.is_time(dtype):
        return "time"
    if pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype) or pa.types.is_fixed_size_binary(dtype) or _bytes_view(dtype):
        return "bytes"
    return "other"


def called(dtype: pa.DataType) -> str:
    """The name of a type for messages."""
    return {"text": "text", "bool": "booleans", "time": "times", "number": "numbers"}.get(kind_of(dtype), str(dtype))


def plain_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """`batch` without types that few Arrow functions support: views, dictionaries of them, unsigned codes, half precision."""
    if _RARE.isdisjoint([dtype.id for dtype in batch.schema.types]):
        return batch
    return pa.RecordBatch.from_arrays([_plain_column(column) for column in batch.columns], batch.schema.names)


def _plain_column(column: pa.Array) -> pa.Array:
    dtype = column.type
    if pa.types.is_dictionary(dtype):
        words = _plain_column(column.dictionary)
        if words is column.dictionary and not pa.types.is_unsigned_integer(dtype.index_type):
            return column
        return pa.DictionaryArray.from_arrays(column.indices.cast(pa.int64()), words)
    if pa.types.is_string_view(dtype):
        return column.cast(pa.large_string())
    if pa.types.is_float16(dtype):
        return column.cast(pa.float32())
    return column.cast(pa.large_binary()) if _bytes_view(dtype) else column


def _bytes_view(dtype: pa.DataType) -> bool:
    return pa.types.is_binary_view(dtype)


def without(batch: pa.RecordBatch, nulls: Sequence[str]) -> pa.RecordBatch:
    """`batch` with no value where one is spelled as one of `nulls`, or is the number that it spells."""
    if not nulls:
        return batch
    numbers = []
    for text in nulls:
        with suppress(ValueError):
            numbers.append(float(text))

    def masked(column: pa.Array) -> pa.Array:
        plain, kind = decoded(column), kind_of(column.type)
        if kind not in ("text", "number") or pa.types.is_null(plain.type):
            return column
        values = pc.utf8_trim_whitespace(plain) if kind == "text" else plain.cast(pa.float64(), safe=False)
        mask = pc.is_in(values, pa.array(nulls if kind == "text" else numbers, values.type))
        return pc.if_else(mask, pa.scalar(None, plain.type), plain) if mask.true_count else column

    return pa.RecordBatch.from_arrays([masked(column) for column in batch.columns], batch.schema.names)


def decoded(column: pa.Array) -> pa.Array:
    """A column with its dictionary encoding, if any, removed."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def codes_of(column: pa.Array, missing: int) -> np.ndarray:
    """int32 codes of a dictionary column, `missing` for null. Raises ColumnTypeError for codes out of range."""
    indices = column.indices.cast(pa.int64()) if pa.types.is_unsigned_integer(column.indices.type) else column.indices
    codes = (pc.fill_null(indices, missing) if indices.null_count else indices).to_numpy(zero_copy_only=False)
    if len(codes) and not (missing <= codes.min() and codes.max() < len(column.dictionary)):
        raise ColumnTypeError(f"holds codes from {codes.min()} to {codes.max()} for {len(column.dictionary)} values")
    return codes.astype(np.int32, copy=False)


def floats_of(column: pa.Array) -> np.ndarray:
    """float64, nan where a value is missing; decimals are rounded as Python's `float` rounds their digits.

    Raises ColumnTypeError, and ValueOfRowError for values that float64 cannot represent.
    """
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if kind_of(column.type) not in ("number", "bool"):
        raise ColumnTypeError(f"holds {called(column.type)}, not numbers")
    column = decoded(column)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string())  # whose digits Arrow rounds as Python does
    try:
        return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        for row, value in enumerate(column.to_pylist()):
            if value is not None and int(float(value)) != int(value):
                raise ValueOfRowError(row, f"{value} has more digits than a number can hold (is it an identifier?)") from None
        return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)  # large, but exact doubles


def floats_together(batch: pa.RecordBatch, names: Sequence[str]) -> np.ndarray | None:
    """As `floats_of` of each of the columns, (columns, rows), in one go; None if some are no plain numbers, or whole ones so
    large that doubles may not hold them, or if rows are many."""
    if batch.num_rows > _FEW_ROWS:
        return None
    batch = batch.select(names)
    types = batch.schema.types
    if not types or not all(pa.types.is_integer(dtype) or pa.types.is_floating(dtype) for dtype in types):
        return None
    values = batch.to_tensor(null_to_nan=True, row_major=False).to_numpy().T.astype(np.float64, copy=False)
    wide = [at for at, dtype in enumerate(types) if pa.types.is_integer(dtype) and dtype.bit_width == 64]
    return None if wide and (np.abs(values[wide]) >= EXACT).any() else values


def numbers_of(column: pa.Array) -> np.ndarray:
    """As `floats_of`; ValueOfRowError for infinities, too."""
    values = floats_of(column)
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        raise ValueOfRowError(row, f"{values[row]} is not finite")
    return values
