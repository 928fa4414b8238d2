"""Kernel: Vowpal Wabbit lines to labels, importances, keys and values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamcut.compiler.jit import helper, inlined, kernel
from streamcut.io.text.kernels import CODE, ENTRY, LINE, ROW, TOKEN, looked_up
from streamcut.io.text.number_kernels import MALFORMED, PENDING_NUMBER, number_at

LINE_FEED, RETURN, BAR, COLON, QUOTE, CARET = 10, 13, 124, 58, 39, 94
READ, SKIP, NONE = range(3)  # labels: needed, nan where there is none, not read
UNKNOWN, WEIGHTED, PLAIN = range(3)  # whether rows have importances, as the first one has

# Codes. DONE: all of the text is parsed. The others describe the token from cursor[TOKEN] to cursor[END]
# FULL: `keys` is too small.
DONE, NO_LABEL, BAD_LABEL, BAD_WEIGHT, NEGATIVE, UNWEIGHTED, PREDICTION, NAMELESS, BAD_VALUE, BAD_SCALE, TOO_LARGE, FULL = range(
    12
)
# Slots of the cursor, in addition to those of svmlight. WEIGHTS is read and written, FIRST is the line of the first row.
FIRST, END, WEIGHTS, CURSOR = 10, 11, 12, 13


class KeyedRows(NamedTuple):
    """The output of `parse`: a row for each line feed, an entry for each blank, tab and bar at most; key e is
    keys[key_ends[e]:key_ends[e + 1]]."""

    y: np.ndarray  # float64 (rows)
    weight: np.ndarray  # float64 (rows)
    indptr: np.ndarray  # int64 (rows + 1)
    values: np.ndarray  # float64 (entries)
    keys: np.ndarray  # uint8
    key_ends: np.ndarray  # int64 (entries + 1)


@inlined
def _is_blank(byte):
    return byte == 32 or byte == 9


@helper
def _token_end(text, t, last):
    """The position of the blank, tab or bar from t on, `last` if there is none."""
    while t < last and not _is_blank(text[t]) and text[t] != BAR:
        t += 1
    return t


@helper
def _number(origin, begin, end, starts, numbers, pending, cursor):
    """The value of the whole token from `begin` to `end`: 1 if it is empty, nan if it is no finite number."""
    if begin == end:
        return 1.0
    value, p, status = number_at(origin + begin)
    if status == MALFORMED or p != origin + end or not np.isfinite(value):
        return np.nan
    return looked_up(begin, end, starts, numbers, pending, cursor) if status == PENDING_NUMBER else value


@kernel
def parse(text, stop, labels, single, out, cursor, pending, starts, numbers):
    """Parse the lines text[:stop] into `out` (KeyedRows) until the end or the first refused one. A tag is skipped.

    text     uint8, with a line feed at the end and PADDING bytes after it; the key of a feature is `namespace^feature`
    labels   READ, SKIP or NONE; single: values must fit float32
    cursor   int64 (CURSOR), of which only WEIGHTS (UNKNOWN, WEIGHTED or PLAIN) is read
    pending, starts, numbers   as in the parser of svmlight
    """
    origin = np.int64(text.ctypes.data)
    row, entry, line, at, key_at, first = 0, 0, 0, 0, 0, -1
    code, begin, end, weights = DONE, 0, 0, cursor[WEIGHTS]
    out.indptr[0] = out.key_ends[0] = 0
    while at < stop:
        stop_line, bar = at, -1
        while text[stop_line] != LINE_FEED:
            if text[stop_line] == BAR and bar < 0:
                bar = stop_line
            stop_line += 1
        last = stop_line - (stop_line > at and text[stop_line - 1] == RETURN)
        bar = last if bar < 0 else bar
        heads, t, there = 0, at, bar < last
        y, weight = 0.0 if labels == NONE else np.nan, 1.0
        while t < bar and code == DONE:
            if _is_blank(text[t]):
                t += 1
                continue
            begin, end = t, _token_end(text, t, bar)
            t, there = end, True
            if text[begin] == QUOTE or (end == bar and bar < last):
                continue
            heads += 1
            if heads == 1 and labels != NONE:
                y = _number(origin, begin, end, starts, numbers, pending, cursor)
                code = BAD_LABEL if np.isnan(y) else DONE
            elif heads == 2 and weights == PLAIN:
                code = UNWEIGHTED
            elif heads == 2:
                weight = _number(origin, begin, end, starts, numbers, pending, cursor)
                code = BAD_WEIGHT if np.isnan(weight) else NEGATIVE if weight < 0.0 else DONE
            elif heads > 2:
                code = PREDICTION
        if code == DONE and there and heads == 0 and labels == READ:
            code = NO_LABEL
        if code == DONE and there and weights == UNKNOWN:
            weights = WEIGHTED if heads > 1 else PLAIN
        name, name_end, scale = bar, bar, 1.0
        while t < last and code == DONE:
            if _is_blank(text[t]):
                t += 1
                continue
            named = text[t] == BAR
            begin = t = t + named
            while t < last and not _is_blank(text[t]) and text[t] != COLON and text[t] != BAR:
                t += 1
            if named:
                name, name_end = begin, t
            elif t == begin:
                code, end = NAMELESS, t
                break
            else:
                if key_at + name_end - name + 1 + t - begin > len(out.keys):
                    code = FULL
                    break
                if name_end > name:
                    for b in range(name, name_end):
                        out.keys[key_at] = text[b]
                        key_at += 1
                    out.keys[key_at] = CARET
                    key_at += 1
                for b in range(begin, t):
                    out.keys[key_at] = text[b]
                    key_at += 1
            number = 1.0
            if t < last and text[t] == COLON:
                begin, end = t + 1, _token_end(text, t, last)
                t = end
                number = _number(origin, begin, end, starts, numbers, pending, cursor)
                if np.isnan(number):
                    code = BAD_SCALE if named else BAD_VALUE
                    break
            if named:
                scale = number
                continue
            out.values[entry] = number * scale
            if not np.isfinite(np.float32(out.values[entry]) if single else out.values[entry]):
                code = TOO_LARGE
                break
            entry += 1
            out.key_ends[entry] = key_at
        if code != DONE:
            break
        if there:
            first = line if first < 0 else first
            out.y[row], out.weight[row] = y, weight
            row += 1
            out.indptr[row] = entry
        line += 1
        at = stop_line + 1
    cursor[ROW], cursor[ENTRY], cursor[LINE], cursor[FIRST], cursor[WEIGHTS] = row, entry, line, first, weights
    cursor[CODE], cursor[TOKEN], cursor[END] = code, begin, end
