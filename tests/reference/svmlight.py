"""An obvious svmlight parser: one line at a time, by the book, with Python's split and float()."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

import numpy as np

NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
WHOLE = re.compile(rb"[0-9]+")
MASK = 2**64 - 1


class Refused(Exception):  # noqa: N818
    """The line is refused."""


def number(text: bytes) -> float:
    if not NUMBER.fullmatch(text) or not np.isfinite(float(text)):
        raise Refused("number")
    return float(text)


def stored(value: float, dtype) -> float:
    """`value` rounded to the type of values in a store."""
    with np.errstate(over="ignore"):
        rounded = float(np.dtype(dtype).type(value))
    if not np.isfinite(rounded):
        raise Refused("overflow")
    return rounded


class Row(NamedTuple):
    y: float
    qid: int | None
    weight: float
    indices: list[int]
    values: list[float]
    unsorted: bool
    zeros: int
    underflows: int
    duplicates: int


def parse_file(text: bytes, options) -> tuple[list[Row], list[int]]:
    """(rows, numbers from 1 of the refused lines), as if every refused line were skipped."""
    rows, refused = [], []
    has_qid = None
    for line_number, line in enumerate(text.removeprefix(b"\xef\xbb\xbf").removesuffix(b"\n").split(b"\n"), 1):
        try:
            row = parse_line(line.removesuffix(b"\r"), options)
            if row is None:
                continue
            if has_qid is not None and has_qid != (row.qid is not None):
                raise Refused("qid on some rows only")
        except Refused:
            refused.append(line_number)
            continue
        has_qid = row.qid is not None
        rows.append(row)
    return rows, refused


def parse_line(line: bytes, options) -> Row | None:
    names = options.hash_bits or options.label_map  # which may be words in any language
    before_comment = line.partition(b"#")[0]
    if b"\0" in line or re.search(rb"[^\t\x20-\x7e\x80-\xff]" if names else rb"[^\t\x20-\x7e]", before_comment):
        raise Refused("byte")
    words = [word for word in re.split(rb"[ \t]+", before_comment) if word]
    if not words:
        return None
    label, weight, features = words[0], 1.0, words[1:]
    if options.label_weights and b":" in label:
        label, _, text = label.partition(b":")
        weight = number(text)
        if weight < 0:
            raise Refused("weight")
    if options.multilabel is None:
        y = one_label(label, options)
    else:
        empty = b":" in label
        y = 1.0 if not empty and options.multilabel in [one_label(part, options) for part in label.split(b",")] else -1.0
        features = words if empty else features
    qid = None
    if features and features[0].startswith(b"qid:"):
        text = features.pop(0)[4:]
        if not WHOLE.fullmatch(text) or int(text) > 2**63 - 1:
            raise Refused("qid")
        qid = int(text)
    return with_features(features, options, y, qid, weight)


def with_features(features: list[bytes], options, y: float, qid: int | None, weight: float) -> Row:
    entries: dict[int, list[float]] = {}
    order, zeros, underflows = [], 0, 0
    for token in features:
        name, colon, text = token.partition(b":")
        if not colon or not name:
            raise Refused("index:value")
        value = stored(number(text), options.dtype)
        if value == 0:
            underflow = bool(re.search(rb"[1-9]", re.split(rb"[eE]", text)[0]))
            underflows += underflow
            zeros += not underflow
        order.append(column(name, options))
        entries.setdefault(order[-1], []).append(value)
    duplicates = "sum" if options.hash_bits else options.duplicates
    if len(entries) < len(order) and duplicates == "error":
        raise Refused("duplicate")
    row = {
        index: values[-1] if duplicates == "last" else stored(sum(values), options.dtype)
        for index, values in sorted(entries.items())
    }
    kept = {index: value for index, value in row.items() if value != 0 or options.keep_zeros}
    unsorted = any(b < a for a, b in pairwise(order))
    return Row(y, qid, weight, [*kept], [*kept.values()], unsorted, zeros, underflows, len(order) - len(entries))


def one_label(text: bytes, options) -> float:
    if options.label_map is None:
        return number(text)
    if text.decode(errors="replace") not in options.label_map:
        raise Refused("label")
    return options.label_map[text.decode()]


def column(name: bytes, options) -> int:
    if options.hash_bits:
        h = int(name) if WHOLE.fullmatch(name) and int(name) < 2**63 else fnv1a(name)
        h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9 & MASK
        h = (h ^ h >> 27) * 0x94D049BB133111EB & MASK
        return (h ^ h >> 31) >> (64 - options.hash_bits)
    if not WHOLE.fullmatch(name):
        raise Refused("index")
    index = int(name) - options.index_base
    if index < 0 or index >= (options.n_features or (2**63 if options.wide_index else 2**31) - options.index_base):
        raise Refused("index")
    return index


def fnv1a(name: bytes) -> int:
    h = 0xCBF29CE484222325
    for byte in name:
        h = (h ^ byte) * 0x100000001B3 & MASK
    return h
