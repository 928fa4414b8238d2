"""Roles for columns that nobody has spoken of and that `convert` would ask about: texts, identifiers, what is no feature."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.tables.arrow import decoded, kind_of
from streamcut.io.tables.roles import INDEX, columns_given, label_rule, named_in, names_in, of_words, parts_of_texts

_FEW = 50  # rows that have to be seen before a column is called an identifier
_DISTINCT = 0.9  # and this part of its values differs
_NAMED = re.compile(r"(^|[^a-z])(id|key|uuid|guid|row|index|number|nr|no)$|[a-z]I[dD]$|^Unnamed: 0$", re.IGNORECASE)
_EXACT = 1 << 53  # whole numbers that float64 keeps


def guessed_roles(sample: pa.RecordBatch, options: ConvertOptions, where: str) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """({option of `convert`: columns that it should get, beside those that it has}, a sentence for each of these columns).

    sample   the first rows of the table; `where` names it in messages

    Raises UsageError for labels that the table does not have.
    """
    schema = sample.schema
    named = {label_rule(schema, options.labels, where).column, options.qid, options.weights, *columns_given(options)}
    named |= {*names_in(options.drop), *names_in(options.id), *named_in(schema, "file"), *named_in(schema, "text")}
    roles: dict[str, list[str]] = {"text": [], "id": [], "drop": [], "numeric": []}
    told = []
    for name in schema.names if "*" not in named else ():
        found = None if name in named else _guess(name, sample.column(name))
        if found is not None:
            role, why = found
            roles[role].append(name)
            if why:
                told.append(f"column {name!r}: {why}")
    given = {role: (*names_in(getattr(options, role)), *names) for role, names in roles.items() if names}
    return given, told


def _guess(name: str, column: pa.Array) -> tuple[str, str] | None:
    """(role, why) where `convert` would ask or be wrong; None: it decides."""
    kind = kind_of(column.type)
    if INDEX.fullmatch(name):
        return "drop", f"the index of a pandas frame; left out (--numeric {name} or --categorical {name} takes it)"
    if kind == "other":
        return "drop", f"holds {column.type}, of which no feature can be made; left out"
    if pa.types.is_null(column.type) or kind in ("time", "bool"):
        return None
    column = decoded(column).drop_null()
    rows = len(column)
    distinct = pc.count_distinct(column).as_py()
    many = rows >= _FEW and distinct > _DISTINCT * rows
    if kind == "number":
        if not pa.types.is_integer(column.type) or not rows:
            return None
        least, most = pc.min_max(column).as_py().values()
        if max(abs(least), abs(most)) >= _EXACT or (many and (_NAMED.search(name) or most - least == rows - 1)):
            return "id", f"looks like an identifier; left out (--numeric {name} or --categorical {name} takes it)"
        return ("numeric", "") if many else None
    if kind == "text":
        if parts_of_texts(column):
            return None
        if of_words(column):
            return "text", f"taken as text, by its words (--categorical {name} takes each text as one value)"
    if many and kind in ("text", "bytes"):
        return "id", f"nearly all values differ; left out (--text {name} or --categorical {name} takes it)"
    return None
