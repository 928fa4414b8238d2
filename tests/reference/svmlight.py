"""An obvious svmlight parser: one line at a time, by the book, with Python's float()."""

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
    lines = text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for number, line in enumerate(lines, 1):
        try:
            row = parse_line(line, options)
            if row is None:
                continue
            if has_qid is not None and has_qid != (row.qid is not None):
                raise Refused("qid on some rows only")
        except Refused:
            refused.append(number)
            continue
        has_qid = row.qid is not None
        rows.append(row)
    return rows, refused


def parse_line(line: bytes, options) -> Row | None:
    line = line.removesuffix(b"\r")
    if b"\0" in line:
        raise Refused("NUL")
    line = line.partition(b"#")[0]
    names = options.hash_bits or options.label_map  # which may be words in any language
    if re.search(rb"[^\t\x20-\x7e\x80-\xff]" if names else rb"[^\t\x20-\x7e]", line):
        raise Refused("byte")
    tokens = [token for token in re.split(rb"[ \t]+", line) if token]
    if not tokens:
        return None
    label, weight = tokens[0], 1.0
    if options.label_weights and b":" in label:
        label, _, text = label.partition(b":")
        weight = number(text)
        if weight < 0:
            raise Refused("weight")
    if options.multilabel is not None:
        empty = b":" in label
        labels = [] if empty else [one_label(part, options) for part in label.split(b",")]
        y = 1.0 if options.multilabel in labels else -1.0
        features = tokens if empty else tokens[1:]
    else:
        y, features = one_label(label, options), tokens[1:]
    qid = None
    if features and features[0].startswith(b"qid:"):
        text = features.pop(0)[4:]
        if not WHOLE.fullmatch(text) or int(text) > 2**63 - 1:
            raise Refused("qid")
        qid = int(text)
    return with_features(features, options, y, qid, weight)


def with_features(features: list[bytes], options, y: float, qid: int | None, weight: float) -> Row:
    kind = np.dtype(options.dtype).type
    entries: dict[int, list[float]] = {}
    order, zeros, underflows = [], 0, 0
    for token in features:
        name, colon, text = token.partition(b":")
        if not colon or not name:
            raise Refused("index:value")
        value = number(text)
        with np.errstate(over="ignore"):
            stored = float(kind(value))
        if not np.isfinite(stored):
            raise Refused("overflow")
        if stored == 0:
            mantissa = re.split(rb"[eE]", text)[0]
            underflow = bool(re.search(rb"[1-9]", mantissa))
            underflows += underflow
            zeros += not underflow
        index = column(name, options)
        order.append(index)
        entries.setdefault(index, []).append(stored)
    duplicates = "sum" if options.hash_bits else options.duplicates
    if len(entries) < len(order) and duplicates == "error":
        raise Refused("duplicate")
    indices, values = [], []
    for index in sorted(entries):
        with np.errstate(over="ignore"):
            value = entries[index][-1] if duplicates == "last" else float(kind(sum(entries[index])))
        if not np.isfinite(value):
            raise Refused("overflow")
        if value != 0 or options.keep_zeros:
            indices.append(index)
            values.append(value)
    unsorted = any(b < a for a, b in pairwise(order))
    return Row(y, qid, weight, indices, values, unsorted, zeros, underflows, len(order) - len(entries))


def number(text: bytes) -> float:
    if not NUMBER.fullmatch(text) or not np.isfinite(float(text)):
        raise Refused("number")
    return float(text)


def one_label(text: bytes, options) -> float:
    if options.label_map is None:
        return number(text)
    if text.decode(errors="replace") not in options.label_map:
        raise Refused("label")
    return options.label_map[text.decode()]


def column(name: bytes, options) -> int:
    if options.hash_bits:
        return mixed(int(name) if WHOLE.fullmatch(name) and int(name) < 2**63 else fnv1a(name)) >> (64 - options.hash_bits)
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


def mixed(h: int) -> int:
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9 & MASK
    h = (h ^ h >> 27) * 0x94D049BB133111EB & MASK
    return h ^ h >> 31
