"""Export to SQL: one SELECT that scores the rows of a table, for DuckDB and SQLite."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np

from streamcut.errors import UsageError
from streamcut.exports.linear_form import linear_form
from streamcut.exports.raw_form import Category, Coding, Cross, Number, RawForm, raw_form
from streamcut.io.recipe.table import BOOLEAN, BOOLEANS, NUMBER, TEXT
from streamcut.io.tables.values import is_number
from streamcut.models.link import Odds, OwnLink, Sigmoid
from streamcut.models.model import Model

TABLE = "rows"
MOST_BYTES = 1_000_000  # of a statement: SQLite's default limit
_LARGEST = "1.7976931348623157e308"
_NEVER = "1 = 0"  # a word in a column of another type, which cannot occur in SQL
_ADDED = 50  # terms in a row: both allow expressions a thousand deep


def sql_select(model: Model, link: OwnLink | None) -> bytes:
    """A SELECT of all columns of the table "rows" and `predicted_label`, `predicted_score`, `predicted_probability`.

    Several classes have a score and a probability each, `predicted_score_1` and so on in the order of the labels, which a
    comment lists; a regression and a ranking have `predicted_answer` alone. NULL, NaN (of DuckDB) and the empty text are
    missing. Rows with a missing value get NULL if training refused them; so do, in SQLite, rows with a value of another type
    than a comment lists, which DuckDB refuses. An absent column is an error. Probabilities need `exp`, which SQLite has if it
    was built with mathematical functions.

    Raises UsageError for a model without a linear form, one of numbered features, recipes of more than numbers, categories, bins
    and crosses, names that SQL treats as equal, and a statement of more than MOST_BYTES.
    """
    raw = raw_form(model, linear_form(model, "sql", link), "sql")
    if raw is None:
        raise UsageError("sql: the model takes numbered features, and a table has columns with names; train it on a table")
    columns = raw.columns
    folded = [name.casefold() for name in columns]
    for name in columns:
        if folded.count(name.casefold()) > 1:
            raise UsageError(f"sql: column {name!r} and another differ in upper and lower case alone, which is one name in SQL")
    text = _statement(raw, columns)
    content = text.encode("utf-8", "surrogateescape")
    if len(content) > MOST_BYTES:
        raise UsageError(f"sql: the statement has {len(content):,} bytes, and SQLite takes {MOST_BYTES:,}; use fewer categories")
    return content


def _statement(raw: RawForm, columns: dict[str, str]) -> str:
    form, several = raw.form, len(raw.form.weights) > 1
    names = [f"predicted_score_{k + 1}" for k in range(len(form.weights))] if several else ["predicted_score"]
    told = ["-- Scores the rows of a table or view called rows; made by streamcut. Its columns and their types:"]
    told += [f"--   {json.dumps(name)}: {kind}" for name, kind in columns.items()]
    if form.labels is None:
        (score,) = _scores(raw)
        answer = f"exp({score})" if form.exponential else score
        return "\n".join([*told, f"SELECT t.*,\n  {answer} AS predicted_answer\nFROM {_name(TABLE)} AS t;\n"])
    labels = [_literal(label) for label in form.labels.tolist()]
    if several:
        told.append(f"-- Classes 1 to {len(labels)}: {json.dumps(form.labels.tolist())}")
        best = [f"WHEN {_all_at_least(names, k)} THEN {label}" for k, label in enumerate(labels)]
        label = f"CASE {' '.join(best)} END"
    else:
        label = f"CASE WHEN s.predicted_score > 0 THEN {labels[1]} WHEN s.predicted_score <= 0 THEN {labels[0]} END"
    scored = ",\n".join(f"  {score} AS {name}" for name, score in zip(names, _scores(raw), strict=True))
    outer = ["s.*", f"{label} AS predicted_label", *_probabilities(form.link, names)]
    chosen = ",\n  ".join(outer)
    return "\n".join([*told, f"SELECT {chosen}\nFROM (SELECT t.*,\n{scored}\nFROM {_name(TABLE)} AS t) AS s;\n"])


def _all_at_least(names: Sequence[str], k: int) -> str:
    """The condition that class k is the first with the highest score."""
    others = [f"s.{names[k]} {'>' if other < k else '>='} s.{name}" for other, name in enumerate(names) if other != k]
    return " AND ".join(others)


def _probabilities(link: OwnLink | None, names: Sequence[str]) -> list[str]:
    if link is None:
        return []
    if isinstance(link, Sigmoid):
        return [f"{_sigmoid(f'({_number(link.A)} * s.{names[0]} + {_number(link.B)})')} AS predicted_probability"]
    if isinstance(link, Odds):
        powers = [_sigmoid(f"(-s.{name})") for name in names]
        total = " + ".join(powers)
    else:
        offsets = link.offsets or (0.0,) * len(names)
        shifted = [f"({_number(link.scale)} * s.{name} + {_number(b)})" for name, b in zip(names, offsets, strict=True)]
        powers = [" + ".join(_power(f"({other} - {each})") for other in shifted) for each in shifted]
        return [f"1e0 / ({power}) AS predicted_probability_{k + 1}" for k, power in enumerate(powers)]
    return [f"{power} / ({total}) AS predicted_probability_{k + 1}" for k, power in enumerate(powers)]


def _sigmoid(x: str) -> str:
    """1 / (1 + exp(x))."""
    return f"1e0 / (1e0 + {_power(x)})"


def _power(x: str) -> str:
    """exp(x), or 1e300 if that is smaller; dividing by it gives practically 0."""
    return f"CASE WHEN {x} > 690e0 THEN 1e300 ELSE exp({x}) END"


def _scores(raw: RawForm) -> list[str]:
    """An expression for each score."""
    return [_sum([_number(float(b)), *_terms(raw, k)]) for k, b in enumerate(raw.form.intercepts)]


def _sum(terms: Sequence[str]) -> str:
    if len(terms) <= _ADDED:
        return "\n    + ".join(terms)
    parts = [f"({_sum(terms[i : i + _ADDED])})" for i in range(0, len(terms), _ADDED)]
    return _sum(parts)


def _terms(raw: RawForm, k: int) -> list[str]:
    def weight(feature: int) -> float:
        return float(raw.weight(feature)[k])

    found = []
    for part in raw.parts:
        if isinstance(part, Number):
            x = _column(part.column, number=True)
            value = f"{_number(weight(part.feature))} * (({x} - {_number(part.centre)}) / {_number(part.spread)})"
            wrong = _is_wrong(part.column, NUMBER)
            found.append(
                f"CASE WHEN {wrong} THEN NULL WHEN {_no_number(x)} THEN {_missing(raw, weight(part.absent))} ELSE {value} END"
            )
        elif isinstance(part, Category):
            found.append(_category(raw, part, weight))
        elif term := _cross(part, weight):
            found.append(term)
    return found


def _category(raw: RawForm, part: Category, weight: Callable[[int], float]) -> str:
    coding = part.coding
    kind = NUMBER if coding.edges is not None else coding.type
    cases = [
        f"WHEN {_is_wrong(coding.column, kind)} THEN NULL",
        f"WHEN {_is_missing(coding)} THEN {_missing(raw, weight(part.absent))}",
    ]
    if coding.edges is not None:
        x, weights = _column(coding.column, number=True), [weight(feature) for feature in part.features]
        cases += [f"WHEN {x} < {_number(edge)} THEN {_number(w)}" for edge, w in zip(coding.edges, weights, strict=False)]
        return f"CASE {' '.join(cases)} ELSE {_number(weights[-1])} END"
    for code, feature in enumerate(part.features):
        if weight(feature):
            cases.append(f"WHEN {_has(coding, code)} THEN {_number(weight(feature))}")
    return f"CASE {' '.join(cases)} ELSE 0e0 END"


def _cross(part: Cross, weight: Callable[[int], float]) -> str:
    """One case per value of the first column, with nested cases for the next."""

    def below(level: int, features: dict[tuple[int, ...], float]) -> str:
        if level == len(part.codings):
            return _number(features[()])
        found: dict[int, dict[tuple[int, ...], float]] = {}
        for (code, *rest), w in features.items():
            found.setdefault(code, {})[tuple(rest)] = w
        cases = [f"WHEN {_has(part.codings[level], code)} THEN {below(level + 1, more)}" for code, more in found.items()]
        return f"CASE {' '.join(cases)} ELSE 0e0 END"

    features = {codes: weight(feature) for codes, feature in part.features.items() if weight(feature)}
    return below(0, features) if features else ""


def _has(coding: Coding, code: int) -> str:
    """The condition that a column has the value of a code."""
    x = _column(coding.column, number=coding.edges is not None)
    if coding.edges is not None:
        least = [f"{x} >= {_number(coding.edges[code - 1])}"] if code else [f"NOT ({_no_number(x)})"]
        most = [f"{x} < {_number(coding.edges[code])}"] if code < len(coding.edges) else [f"NOT ({_no_number(x)})"]
        return " AND ".join(least + most)
    word = coding.words[code]
    if coding.type == BOOLEAN:
        return f"{x} = {BOOLEANS[word].upper()}" if word in BOOLEANS else _NEVER
    if coding.numbers:
        return f"{x} = {_number(float(word))}" if is_number(word) else _NEVER
    return f"{x} = {_literal(word)}"


def _is_missing(coding: Coding) -> str:
    x = _column(coding.column, number=coding.edges is not None)
    if coding.edges is not None or coding.numbers:
        return _no_number(x)
    return f"{x} IS NULL" if coding.type == BOOLEAN else f"{x} IS NULL OR {x} = ''"


def _missing(raw: RawForm, weight: float) -> str:
    return "NULL" if raw.missing == "error" else _number(weight)


def _no_number(x: str) -> str:
    """The condition that a number is missing: NaN is greater than all numbers in DuckDB, and NULL in SQLite."""
    return f"{x} IS NULL OR {x} > {_LARGEST}"


def _is_wrong(column: str, kind: str) -> str:
    """The condition that a value has another type, as SQLite's columns may; DuckDB has other names for types."""
    others = "'integer', 'real'" if kind == TEXT else "'text'"
    return f"typeof({_column(column)}) IN ({others})"


def _column(name: str, *, number: bool = False) -> str:
    """A column of the table (SQLite reads an unknown quoted name as text); as a `number` if it may hold booleans."""
    x = f"t.{_name(name)}"
    return f"CAST({x} AS DOUBLE)" if number else x


def _name(name: str) -> str:
    return '"' + _checked(name).replace('"', '""') + '"'


def _literal(value: str | float) -> str:
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else _number(value)
    return "'" + _checked(value).replace("'", "''") + "'"


def _checked(text: str) -> str:
    if "\0" in text:
        raise UsageError(f"sql: {text!r} has a character of code 0, which no statement may have")
    return text


def _number(value: float) -> str:
    """With an exponent: without one DuckDB reads a literal as a decimal."""
    text = repr(float(value))
    assert np.isfinite(value)
    return f"({text})" if "e" in text else f"{text}e0" if value >= 0 and not text.startswith("-") else f"({text}e0)"
