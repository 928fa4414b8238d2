"""An obvious parser of Vowpal Wabbit's text: one line at a time, with Python's split and float()."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from sklearn.utils import murmurhash3_32

NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Refused(Exception):  # noqa: N818
    """The line is refused."""


class Row(NamedTuple):
    """`features`: {key: values in the order of the line}; `label` and `importance` are None when they are not there."""

    line: int
    label: float | None
    importance: float | None
    features: dict[bytes, list[float]]


def parse_file(text: bytes, labels: str, dtype: str) -> tuple[list[Row], int | None]:
    """(rows, the number from 1 of the first line that is refused, None: none is)."""
    rows = []
    for number, line in enumerate(text.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            row = parse_line(line.removesuffix(b"\r"), number, labels, dtype)
        except Refused:
            return rows, number
        if row is not None:
            rows.append(row)
    return rows, None


def parse_line(line: bytes, number: int, labels: str, dtype: str) -> Row | None:
    head, bar, rest = line.partition(b"|")
    words = tokens(head)
    if not words and not bar:
        return None
    if bar and words and not head.endswith((b" ", b"\t")):
        words.pop()  # a tag touches the bar
    words = [word for word in words if not word.startswith(b"'")]
    if len(words) > 2:
        raise Refused("an initial prediction")
    if not words and labels == "read":
        raise Refused("no label")
    label = finite(words[0]) if words and labels != "none" else None
    importance = finite(words[1]) if len(words) > 1 else None
    if importance is not None and importance < 0:
        raise Refused("importance")
    features: dict[bytes, list[float]] = {}
    for space in rest.split(b"|") if bar else ():
        name, scale, named = namespace(space)
        for token in tokens(space[named:]):
            feature, _, value = token.partition(b":")
            if not feature:
                raise Refused("a feature without a name")
            with np.errstate(over="ignore"):
                stored = float(np.dtype(dtype).type((finite(value) if value else 1.0) * scale))
            if not np.isfinite(stored):
                raise Refused("overflow")
            features.setdefault(name + b"^" + feature if name else feature, []).append(stored)
    return Row(number, label, importance, features)


def namespace(space: bytes) -> tuple[bytes, float, int]:
    """(its name, its scale, where its features begin)."""
    word = re.match(rb"[^ \t]*", space)[0]
    name, _, scale = word.partition(b":")
    return name, finite(scale) if scale else 1.0, len(word)


def tokens(text: bytes) -> list[bytes]:
    return [token for token in re.split(rb"[ \t]+", text) if token]


def finite(text: bytes) -> float:
    if not NUMBER.fullmatch(text) or not np.isfinite(float(text)):
        raise Refused("number")
    return float(text)


class Columns:
    """Which feature a key is: a hash, the next number of a dictionary, or that of known names."""

    def __init__(self, bits: int | None, names: list[bytes] | None) -> None:
        self.bits, self.learns = bits, names is None
        self.numbers = {name: number for number, name in enumerate(names or ())}

    def of(self, key: bytes) -> int | None:
        if self.bits is not None:
            return abs(murmurhash3_32(key, 0)) & ((1 << self.bits) - 1)
        if self.learns:
            return self.numbers.setdefault(key, len(self.numbers))
        return self.numbers.get(key)
