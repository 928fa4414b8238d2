"""The roles of a table's columns: as the user specifies, else guessed from their types."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from streamcut.errors import BadInputError, UsageError, given
from streamcut.io.recipe.recipe import LabelRule
from streamcut.io.recipe.table import (
    BINNED,
    BOOLEAN,
    BOOLEANS,
    CATEGORICAL,
    INTEGER,
    NUMBER,
    NUMERIC,
    TEXT,
    TIME,
    TIME_PARTS,
    Comparison,
    Table,
    TableColumn,
    missing_in,
)
from streamcut.io.tables.arrow import EXACT, NULLS, ValueOfRowError, decoded, kind_of
from streamcut.io.tables.files import given_role
from streamcut.io.tables.times import ENDLESS, times_of
from streamcut.io.tables.values import is_number, type_of

if TYPE_CHECKING:
    from streamcut.io.conversion.options import ConvertOptions

NO_LABELS = "none"
_PARTS = ("month", "weekday", "hour")  # of a time, by default
_FEW_ROWS = 50  # least rows to call a column an identifier
_DISTINCT = 0.9  # and least fraction of distinct values
_NAMED = re.compile(r"(^|[^a-z])(id|key|uuid|guid|row|index|number|nr|no)$|[a-z]I[dD]$|^Unnamed: 0$", re.IGNORECASE)
_YEARS = range(1800, 2200)
_FEW_TEXTS = 20  # least rows to call a text among numbers a mistake
_LONG = 40  # characters: texts of a greater mean length are not categories
_SEVERAL = 3  # words of a text
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_MARKED = re.compile(r"[-+(]?\s?[$€£¥]?\s?[-+]?\d[\d.,' \u00a0\u2019]*\s?[%$€£¥)]?")
_TIME = re.compile(r"\d{4}-\d\d-\d\d($|[ T]\d\d:\d\d)")
INDEX = re.compile(r"__index_level_\d+__")  # pandas' name for the index of a frame in Parquet and Arrow


def roles_of(
    sample: pa.RecordBatch, options: ConvertOptions, where: str, *, goes_on: bool = False
) -> tuple[Table, LabelRule, list[str]]:
    """(the columns of a table that begins with `sample`, its labels, a sentence for each guess to report).

    `where` names the table in messages; `goes_on`: types are guessed from the sample, and rows follow. Columns that look like
    identifiers, or that cannot become features, are left out unless the options name them.

    Raises UsageError for options that do not fit the table, and for columns whose role only the user can know.
    """
    schema = sample.schema
    label = label_rule(schema, options.labels, where)
    roles, there = columns_in(options), {*schema.names, "*"}
    for name in chain(roles, names_in(options.drop), names_in(options.id), filter(None, (options.qid, options.weights))):
        if name not in there:
            raise UsageError(f"{where}: no column {name!r}; it has {', '.join(schema.names)}")
    others = {name for name in (label.column, options.qid, options.weights) if name is not None}
    others |= {*names_in(options.drop), *names_in(options.id), *(set(named_in(schema, "file")) - set(roles))}
    if clash := sorted(others & set(roles)):
        raise UsageError(f"column {clash[0]!r} has two roles: {roles[clash[0]].role}, and labels, qid, weights, id or dropped")
    columns, notes = [], []
    free = [] if "*" in others else [name for name in schema.names if name.strip() and name not in {*roles, *others}]
    if empty := [name for name in free if goes_on and pa.types.is_null(schema.field(name).type)]:
        raise UsageError(
            f"{where}: no value of {'column' if len(empty) == 1 else 'columns'} {', '.join(empty)} is in the first "
            f"{sample.num_rows:,} rows, from which types are guessed; {given_role(','.join(empty))}"
        )
    for name in schema.names:
        if name in roles:
            columns.append(roles[name])
        elif name not in others and "*" not in others:
            column, why = _guessed(name, sample, options.ngrams, where)
            columns += [] if column is None else [column]
            notes += [f"column {name!r}: {why}"] if why else []
    if not columns:
        raise UsageError("; ".join([f"{where}: no column is left to make features from", *notes]))
    if len(columns) == 1 and columns[0].role == TEXT:
        only = columns[0]
        columns = [TableColumn(only.name, TEXT, ngrams=only.ngrams, characters=only.characters, bare=True)]
    crosses = tuple(tuple(part.strip() for part in cross.split("*")) for cross in names_in(options.cross))
    categories = {column.name for column in columns if column.role in (CATEGORICAL, BINNED)}
    for cross in crosses:
        if len(cross) < 2 or not set(cross) <= categories:
            bad = next((name for name in cross if name not in categories), cross[0])
            raise UsageError(f"--cross: {'*'.join(cross)}: {bad!r} is not a categorical or binned column")
    missing, nulls = missing_in(options.missing)
    unnamed = 0 if options.header else len(schema)
    return Table(tuple(columns), crosses, missing, options.qid, options.weights, nulls, unnamed), label, notes


def with_types(table: Table, values: pa.RecordBatch, where: str) -> Table:
    """`table` with the column types of `values`, its first rows, as written if all is text.

    Raises UsageError for columns whose names would give the same features, BadInputError for categories that lose digits.
    """
    for name in [
        column.name for column in table.columns if column.role == CATEGORICAL and pa.types.is_floating(values[column.name].type)
    ]:
        if (pc.max(pc.abs(values[name])).as_py() or 0.0) >= EXACT:
            raise BadInputError(f"{where}: column {name!r} holds more digits than a number keeps; write its values as texts")
    wanted = {TEXT: TEXT, TIME: TIME, BINNED: NUMBER, NUMERIC: NUMBER}
    columns = [replace(column, type=wanted.get(column.role) or type_of(values.column(column.name))) for column in table.columns]
    typed = replace(table, columns=tuple(columns))
    if twice := [key for key, count in Counter(typed.prefixes()).items() if count > 1]:
        raise UsageError(f"{where}: the names of two columns or crosses make the same features, {twice[0]!r}; rename one of them")
    return typed


def label_rule(schema: pa.Schema, labels: str | None, where: str) -> LabelRule:
    """The LabelRule of the option --label for a table with these columns. Raises UsageError."""
    if labels is None and (declared := named_in(schema, "label")):
        return LabelRule(column=declared[0])
    if labels is None:
        raise UsageError(
            f"{where}: --label is needed: the column with the labels, a comparison such as 'delay>15', or none for rows that "
            f"are to be scored only; the columns are {', '.join(schema.names)}"
        )
    if labels in schema.names:
        return LabelRule(column=labels)
    if labels == NO_LABELS:
        return LabelRule(none=True)
    comparison = Comparison.parsed(labels)
    if comparison is not None and comparison.column in schema.names:
        return LabelRule(column=comparison.column, comparison=comparison)
    raise UsageError(f"{where}: no column {labels!r} for the labels; it has {', '.join(schema.names)}")


def named_in(schema: pa.Schema, what: str) -> list[str]:
    """The column with role `what` ("label", "file", "text") if the schema declares one; else none."""
    name = (schema.metadata or {}).get(f"streamcut.{what}".encode())
    return [name.decode()] if name is not None and name.decode() in schema.names else []


def columns_in(options: ConvertOptions) -> dict[str, TableColumn]:
    """{name: column} as the options specify. Raises UsageError."""
    columns: dict[str, TableColumn] = {}

    def add(column: TableColumn) -> None:
        if column.name in columns:
            raise UsageError(f"column {column.name!r} has two roles: {columns[column.name].role} and {column.role}")
        columns[column.name] = column

    for name in names_in(options.categorical):
        add(TableColumn(name, CATEGORICAL))
    for name in names_in(options.numeric):
        name, _, bins = name.partition(":bin")
        if bins and (not bins.isdigit() or not 2 <= int(bins) <= 1000):
            raise UsageError(f"--numeric: {name}:bin{bins}: the number of bins must be from 2 to 1000")
        add(TableColumn(name, BINNED, bins=int(bins)) if bins else TableColumn(name, NUMERIC))
    least, most, characters = _ngrams(options.ngrams)
    for name in names_in(options.text):
        add(TableColumn(name, TEXT, ngrams=(least, most), characters=characters))
    for text in (options.time,) if isinstance(options.time, str) else options.time:
        name, _, parts = text.partition(":")
        listed = tuple(part.strip() for part in parts.split(",") if part.strip())
        if unknown := sorted(set(listed) - set(TIME_PARTS)):
            raise UsageError(f"--time: {text}: a time has no part {unknown[0]!r}; parts are {', '.join(TIME_PARTS)}")
        add(TableColumn(name, TIME, parts=listed or _PARTS))
    return columns


def _ngrams(wanted: str | None) -> tuple[int, int, bool]:
    text = wanted or "1,1"
    characters = text.startswith("chars:")
    sizes = text.removeprefix("chars:").split(",")
    if not 1 <= len(sizes) <= 2 or not all(size.strip().isdigit() for size in sizes):
        raise UsageError(f"--ngrams: {wanted}: write 1,2 for runs of one and two words, chars:3,5 for characters")
    least, most = int(sizes[0]), int(sizes[-1])
    if not 1 <= least <= most <= 100:
        raise UsageError(f"--ngrams: {wanted}: sizes are from 1 to 100, the smaller first")
    return least, most, characters


def names_in(option: Iterable[str] | str) -> list[str]:
    if isinstance(option, str):
        return [name.strip() for name in option.split(",") if name.strip()]
    return [str(name) for name in option]


def _guessed(name: str, sample: pa.RecordBatch, ngrams: str | None, where: str) -> tuple[TableColumn | None, str]:
    """(the role suggested by a column's type and values, None: left out; the remark on that guess).

    Raises UsageError if nearly all values are numbers: a mistake, or a category.
    """
    column = sample.column(name)
    kind = kind_of(column.type)
    if not name.strip():
        return None, "has no name; left out (with a name it is taken)"
    if INDEX.fullmatch(name):
        return None, f"the index of a pandas frame; left out ({given('numeric', name)} or {given('categorical', name)} takes it)"
    if pa.types.is_null(column.type):
        return TableColumn(name, CATEGORICAL), ""
    if kind == "other":
        return None, f"holds {column.type}, which cannot become a feature; left out"
    if kind == "time":
        parts = _PARTS[:2] if pa.types.is_date(column.type) else _PARTS[2:] if pa.types.is_time(column.type) else _PARTS
        return TableColumn(name, TIME, parts=parts), ""
    column = decoded(column).drop_null()
    rows = len(column)
    many = rows >= _FEW_ROWS and pc.count_distinct(column).as_py() > _DISTINCT * rows
    if kind == "number" and rows:
        least, most = pc.min_max(column).as_py().values()
        widest, counting = max(abs(least), abs(most)), pa.types.is_integer(column.type) and most - least == rows - 1
        whole = pa.types.is_integer(column.type) or pc.all(pc.equal(column, pc.floor(column))).as_py()
        if whole and (EXACT <= widest < math.inf or (many and (_NAMED.search(name) or counting))):
            also = "" if widest >= EXACT else f"{given('numeric', name)} or "
            return None, f"looks like an identifier; left out ({also}{given('categorical', name)} takes it)"
    if kind == "number":
        return TableColumn(name, NUMERIC), ""
    if kind == "text" and (defaults := parts_of_texts(column)):
        return TableColumn(name, TIME, parts=defaults), ""
    if kind == "text" and (odd := _odd_one_out(sample.column(name))) is not None:
        row, value = odd
        missing = "" if "," in value else f"{given('missing', value.strip())} if it is no value, else "
        raise UsageError(
            f"{where}: nearly all values of column {name!r} are numbers, but that of row {row} (0-based) is {value!r}; say "
            f"{missing}what it is: {given('numeric', name)} (then such a row is an error) or {given('categorical', name)}"
        )
    alone = named_in(sample.schema, "text") == [name]
    if kind == "text" and (alone or of_words(column)):
        least, most, characters = _ngrams(ngrams)
        note = "" if alone else f"taken as text, by its words ({given('categorical', name)} takes each text as one value)"
        return TableColumn(name, TEXT, ngrams=(least, most), characters=characters), note
    some = [text for text in column.slice(0, _FEW_ROWS).to_pylist() if text not in NULLS] if kind == "text" else []
    marked = bool(some) and all(map(_MARKED.fullmatch, some)) and not all(map(_NUMBER.fullmatch, some))
    why = f"numbers such as {some[0]!r} have to be plain, like 1234.5" if marked else "nearly all values differ"
    if many and kind in ("text", "bytes"):
        also = f"{given('text', name)} or " if kind == "text" else ""
        return None, f"{why}; left out ({also}{given('categorical', name)} takes it)"
    return TableColumn(name, CATEGORICAL), f"{why}; each is taken as a category" if marked else ""


def written_otherwise(columns: Iterable[TableColumn], values: pa.RecordBatch) -> list[str]:
    """A sentence on each numeric one of `columns` whose values, as written, begin with zeros: they may be codes."""
    notes = []
    for column in columns:
        texts, name = values.column(column.name), column.name
        if column.role == NUMERIC and kind_of(texts.type) == "text":
            for text in texts.filter(pc.match_substring_regex(texts, r"^\s*[-+]?0\d"))[:1].to_pylist():
                as_written = f"({given('categorical', name)} takes values as they are written)"
                notes.append(f"column {name!r}: {text!r} is taken as a number, without the zeros before it {as_written}")
    return notes


def names_are_data(first: pa.RecordBatch) -> bool | None:
    """Whether the names of the columns look like a row: numbers that do not count or name years, or values of the columns.

    None: they may be a row, as nothing else than numbers that do tells them apart.
    """
    numbers, words, again = [], 0, 0
    for name, column in zip(first.schema.names, first.columns, strict=True):
        kind = "" if pa.types.is_null(column.type) else kind_of(column.type)
        if name in NULLS:
            continue
        if is_number(name.strip()):
            numbers.append(float(name))
        elif kind in ("number", "bool", "time") and not _TIME.match(name) and name not in BOOLEANS:
            return False
        elif kind == "text":
            words, again = words + 1, again + pc.is_in(pa.array([name]), column)[0].as_py()
    steps = {abs(after - before) for before, after in pairwise(numbers)}
    count = steps == {1.0} or (not steps and numbers in ([0.0], [1.0]))
    if (numbers and not count and not all(number in _YEARS for number in numbers)) or (again > 1 and 2 * again > words):
        return True
    return None if numbers else False


def of_words(column: pa.Array) -> bool:
    """Whether texts should be split into words: they are long, or most have several words and few are equal."""
    texts = column.drop_null()
    if not len(texts):
        return False
    if pc.mean(pc.utf8_length(texts)).as_py() > _LONG:
        return True
    words = pc.add(pc.count_substring(pc.utf8_trim_whitespace(texts), " "), 1)
    return pc.mean(pc.greater_equal(words, _SEVERAL)).as_py() > 0.5 and pc.count_distinct(texts).as_py() > len(texts) / 2


def parts_of_texts(column: pa.Array) -> tuple[str, ...]:
    """The default parts if all texts are times, as guessed in CSV; else none."""
    texts = []
    for text in column.to_pylist():
        if text and text not in NULLS and text.lower() not in ENDLESS:
            if not _TIME.match(text):
                return ()
            texts.append(text)
    if not texts:
        return ()
    try:
        times_of(pa.array(texts))
    except ValueOfRowError:
        return ()
    return _PARTS if any(len(text) > len("2024-05-17") for text in texts) else _PARTS[:2]


def _odd_one_out(column: pa.Array) -> tuple[int, str] | None:
    """(row, value) of the first text that is not a number, if nearly all are, or many different ones and it alone is not."""
    column = decoded(column)
    counted = column.value_counts()  # in the order of their first rows
    pairs = zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True)
    counts = {text: count for text, count in pairs if text and text.strip() not in NULLS}
    odd = [text for text in counts if not _NUMBER.fullmatch(text.strip())]
    rows = sum(counts.values())
    if not odd or rows < _FEW_TEXTS:
        return None
    alone = len(odd) == 1 and len(counts) > max(_FEW_ROWS, rows / _SEVERAL)
    if not alone and sum(counts[text] for text in odd) >= (1 - _DISTINCT) * rows:
        return None
    return pc.index(column, pa.scalar(odd[0], column.type)).as_py(), odd[0]


def check_types(schema: pa.Schema, table: Table, where: str, *, spelled: bool = False) -> None:
    """Raise BadInputError when a column of a file cannot have its role in the recipe.

    spelled   all values are text (CSV), and types are guesses: reading will name the row that is not a number
    """
    for column in table.columns:
        dtype = schema.field(column.name).type
        kind = kind_of(dtype)
        fits = {
            NUMERIC: ("number", "bool"),
            BINNED: ("number", "bool"),
            TEXT: ("text",),
            TIME: ("time", "text"),
            CATEGORICAL: ("number", "bool", "text", "time", "bytes"),
        }[column.role]
        if spelled and kind == "text" and column.role in (NUMERIC, BINNED):
            continue
        if kind not in fits and not pa.types.is_null(dtype):
            raise BadInputError(f"{where}: column {column.name!r} holds {dtype}, but the recipe takes it as {column.in_words()}")


def read_as(dtype: pa.DataType, column: TableColumn, *, spelled: bool) -> pa.DataType:
    """The type used to read a column of text: float64 for numbers; times stay as written.

    spelled   the text has no types (CSV): categories stay as written
    """
    if kind_of(dtype) == "other":
        return dtype
    if column.role in (NUMERIC, BINNED):
        return dtype if pa.types.is_boolean(dtype) else pa.float64()
    if pa.types.is_null(dtype) and not spelled:
        return _UNSEEN.get(column.type or TEXT, pa.string())
    if kind_of(dtype) == "time" and (pa.types.is_time(dtype) or column.type is None):
        return pa.string() if spelled and column.role != TIME else dtype
    return pa.string() if spelled or kind_of(dtype) in ("time", "text") else dtype


_UNSEEN = {BOOLEAN: pa.bool_(), INTEGER: pa.int64(), NUMBER: pa.float64()}  # types used to read a JSON column of nulls


def label_read_as(dtype: pa.DataType, rule: LabelRule, *, spelled: bool) -> pa.DataType:
    """The type used to read the labels of a text: float64 for numbers; words stay as written."""
    if spelled and (rule.words or rule.learned):
        return pa.string()
    if pa.types.is_null(dtype):
        return _UNSEEN.get(rule.type or TEXT, pa.string())
    return pa.float64() if pa.types.is_integer(dtype) else dtype
