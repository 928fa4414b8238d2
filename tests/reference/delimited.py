"""An obvious reader of tables in text: Python's csv, float(), and one feature after the other by its name.

What is wrong is the number of a row of the file (0-based), or None for a column as a whole.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils import murmurhash3_32

NULLS = b"|#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|N/A|NA|NULL|NaN|n/a|nan|null".split(b"|")  # of Arrow
NULLS += rb"?|None|none|NONE|Null|NAN|Nan|na|<NA>|NaT|\N".split(b"|")
NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
WHOLE = re.compile(rb"[ \t]*-?[0-9]{1,18}[ \t]*")
NAN, INFINITE = re.compile(rb"[+-]?nan", re.I), re.compile(rb"[+-]?inf(inity)?", re.I)
words_of = CountVectorizer().build_analyzer()


@dataclass(frozen=True)
class Spec:
    """The columns of a table by what they are, and the options of `convert`. `label_map`: {word: number} or None."""

    columns: tuple[str, ...]
    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    cross: tuple[str, ...] = ()
    weight: str | None = None
    qid: str | None = None
    label_map: dict[str, float] | None = None
    labelled: bool = True  # whether column y is read
    skips: bool = False  # rows without a label
    missing: str = "own"
    bits: int | None = None
    dtype: str = "float64"


class Record(NamedTuple):
    raw: bytes
    cells: list[bytes]


class Row(NamedTuple):
    label: float
    weight: float | None
    qid: int | None
    features: dict[str | int, list[float]]  # by name or, hashed, by number: what adds up to the value


def records(text: bytes, delimiter: str) -> list[Record]:
    """What stands between line ends; a quote at the beginning of a cell opens one that may hold any."""
    lines = list(io.StringIO(text.removeprefix(b"\xef\xbb\xbf").decode("latin-1"), newline=""))
    reader, found, begin = csv.reader(iter(lines), delimiter=delimiter), [], 0
    for cells in reader:
        if cells:
            found.append(Record("".join(lines[begin : reader.line_num]).encode("latin-1"), [c.encode("latin-1") for c in cells]))
        begin = reader.line_num
    return found


def never_closed(text: bytes, delimiter: str) -> bool:
    """Whether a quote that opens a cell is open at the end."""
    inside, before = False, "\n"
    for each in text.decode("latin-1"):
        opens = each == '"' and (before in (delimiter, "\n", "\r") or before == "closed")
        before = each if not inside else "closed" if each == '"' else ""
        inside = (each != '"') if inside else opens
    return inside


def objects(text: bytes, spec: Spec) -> tuple[list[bytes], list[list[bytes]], set[int | None]]:
    """(lines, cells as CSV would have them, rows that are wrong) of JSON lines: an object on each that is not blank."""
    lines = [line for line in text.split(b"\n") if line.strip(b" \t\r")]
    rows: list[list[bytes]] = []
    wrong: set[int | None] = set()
    for i, line in enumerate(lines):
        try:
            found = json.loads(line.decode(), object_pairs_hook=_unique)
            rows.append([_cell(found.get(name), name in (*spec.categorical, *spec.text, "z")) for name in spec.columns])
        except (ValueError, AttributeError):
            wrong.add(i)
    return lines, rows, wrong


def other_names(line: bytes, spec: Spec) -> bool:
    """Whether a line is an object with names that are no columns."""
    try:
        return bool(set(json.loads(line.decode("latin-1"))) - set(spec.columns))
    except (ValueError, TypeError):
        return False


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name stands twice")
    return dict(pairs)


def _cell(value: object, text: bool) -> bytes:
    if value is None:
        return b""
    if text != isinstance(value, str) or isinstance(value, bool | list | dict):
        raise ValueError("of another type")
    if not text and not np.isfinite(value):
        raise ValueError("not JSON")
    return str(value).encode()


def parse(rows: list[list[bytes]], spec: Spec) -> tuple[list[Row], set[int | None]]:
    """(rows that have a label, those that are wrong) of the cells below the header."""
    wrong: set[int | None] = {
        i for i, cells in enumerate(rows) if len(cells) != len(spec.columns) or not all(map(is_utf8, cells))
    }
    if wrong:
        return [], wrong
    table = [dict(zip(spec.columns, cells, strict=True)) for cells in rows]
    numbers = {i: {name: number(row[name]) for name in (*spec.numeric, spec.weight) if name} for i, row in enumerate(table)}
    wrong |= {i for i, found in numbers.items() if any(found[name] is None for name in spec.numeric)}
    if spec.weight and any(found[spec.weight] is None for found in numbers.values()):
        wrong.add(None)
    if any(name and all(row[name] in NULLS for row in table) for name in (spec.weight, spec.qid)):
        wrong.add(None)  # a column without a type
    if spec.qid and not all(row[spec.qid] in NULLS or WHOLE.fullmatch(row[spec.qid]) for row in table):
        wrong.add(None)
    labels = read_labels([row["y"] for row in table], spec, wrong) if spec.labelled else [0.0] * len(table)
    found, last, groups = [], None, set()
    for i, row in enumerate(table):
        if labels[i] is None or any(numbers[i][name] is None for name in spec.numeric):
            continue
        values = numbers[i]
        if any(np.isinf(values[name]) for name in spec.numeric):
            wrong.add(i)
        if spec.missing == "error":
            lacking = any(np.isnan(values[name]) for name in spec.numeric) or any(row[name] == b"" for name in spec.categorical)
            wrong |= {i} if lacking else set()
        weight = values[spec.weight] if spec.weight else None
        if weight is not None and None not in wrong and not 0 <= weight < np.inf:
            wrong.add(i)
        qid = int(row[spec.qid]) if spec.qid and WHOLE.fullmatch(row[spec.qid]) else None
        if spec.qid and (qid is None or qid < 0):
            wrong.add(None)
        if qid is not None and qid != last and qid in groups:
            wrong.add(i)
        last = qid
        groups.add(qid)
        features = features_of(row, values, spec)
        if np.dtype(spec.dtype) == np.float32 and any(abs(v) > 3.4e38 for vs in features.values() for v in vs):
            wrong.add(i)
        found.append(Row(labels[i], weight, qid, features))
    return found, wrong


def read_labels(cells: list[bytes], spec: Spec, wrong: set[int | None]) -> list[float | None]:
    """None: missing."""
    numbers = [number(cell) for cell in cells]
    if spec.label_map is None and all(each is not None for each in numbers):
        labels = [None if np.isnan(each) else each for each in numbers]
        wrong |= {i for i, each in enumerate(labels) if each is not None and np.isinf(each)}
    else:
        known = None if spec.label_map is None else {word.encode(): number for word, number in spec.label_map.items()}
        learned: dict[bytes, float] = {}
        labels = []
        for i, cell in enumerate(cells):
            if known is not None and cell and cell not in known:
                wrong.add(i)
            number_of = known if known is not None else learned
            labels.append(number_of.setdefault(cell, float(len(number_of))) if cell else None)
    if not spec.skips:
        wrong |= {i for i, each in enumerate(labels) if each is None}
    return labels


def features_of(row: dict[str, bytes], values: dict[str, float], spec: Spec) -> dict[str | int, list[float]]:
    named: list[tuple[bytes, float]] = []
    for name in spec.numeric:
        missing = np.isnan(values[name])
        if missing and spec.missing == "own":
            named.append((f"{name} is missing".encode(), 1.0))
        elif not missing and values[name] != 0:
            named.append((name.encode(), values[name]))
    for name in spec.categorical:
        if row[name]:
            named.append((f"{name}=".encode() + row[name], 1.0))
        elif spec.missing == "own":
            named.append((f"{name} is missing".encode(), 1.0))
    if spec.cross and all(row[name] for name in spec.cross):
        values_of = [re.sub(rb"([\\*=])", rb"\\\1", row[name]) for name in spec.cross]
        named.append(("*".join(spec.cross).encode() + b"=" + b"*".join(values_of), 1.0))
    for name in spec.text:
        prefix = f"{name}=" if spec.numeric or spec.categorical else ""  # none for the only column
        counts = Counter(words_of(row[name].decode()))
        named += [((prefix + word).encode(), float(count)) for word, count in counts.items()]
    features: dict[str | int, list[float]] = {}
    for key, value in named:
        column = key.decode() if spec.bits is None else abs(murmurhash3_32(key, 0)) & ((1 << spec.bits) - 1)
        features.setdefault(column, []).append(value)
    return features


def number(cell: bytes) -> float | None:
    """nan where it is missing, None where it is no number."""
    if cell in NULLS:
        return np.nan
    cell = cell.strip(b" \t")
    if NAN.fullmatch(cell):
        return np.nan
    if INFINITE.fullmatch(cell):
        return np.inf
    return float(cell) if NUMBER.fullmatch(cell) else None


def is_utf8(cell: bytes) -> bool:
    try:
        cell.decode()
    except UnicodeDecodeError:
        return False
    return True
