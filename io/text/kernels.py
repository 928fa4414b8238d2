"""Kernels of the svmlight parser: bytes of whole lines in, CSR rows out.

One pass over the bytes writes straight into the arrays of the caller. A token is "pending" when the kernel can't evaluate it: a
number that needs more than 128 bits to round (see number_kernels.py), or a label that is a name or a set. The caller resolves
pending tokens and runs the same bytes again with their values in `numbers`. The kernel never guesses: input outside the grammar
ends the run with a code and a position, rolled back to the start of the line.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamcut.compiler.jit import helper, inlined, kernel
from streamcut.io.text.number_kernels import MALFORMED, OK, PENDING_NUMBER, byte_at, number_at, whole_at

PADDING = 16  # bytes that must follow the text in its buffer: a line feed first, then anything


class Rules(NamedTuple):
    """How to interpret the text. Indices in the text run from `base` to `last` (both included)."""

    base: int
    last: int
    hash_bits: int  # 0: features are numbers
    duplicates: int  # ERROR, SUM or LAST
    keep_zeros: bool
    label_tokens: bool  # labels are names or sets: every one is pending
    label_weights: bool
    no_labels: bool  # rows need no labels, and labels present are skipped


class ParsedRows(NamedTuple):
    """Output arrays. For B bytes of text: rows ≤ B//2 + 1, entries ≤ B//4 + 1, and as much again as scratch for sorting a row."""

    indptr: np.ndarray  # int64 (rows + 1), indptr[0] = 0
    indices: np.ndarray  # int64 (2 × entries)
    data: np.ndarray  # float32 or float64 (2 × entries)
    y: np.ndarray  # float64 (rows)
    qid: np.ndarray  # int64 (rows)
    weight: np.ndarray  # float64 (rows)


ERROR, SUM, LAST = range(3)

# Slots of the cursor, the complete state of a run: read at the start, written at the end.
POSITION, ROW, ENTRY, LINE, CODE, TOKEN, PENDING, QID, TOP, BOTTOM = range(10)
COMMENTS, UNSORTED, ZEROS, UNDERFLOWS, DUPLICATES, CURSOR = range(10, 16)
QID_UNKNOWN, QID_REQUIRED, QID_FORBIDDEN = range(3)

# Codes. DONE: all of the text is parsed. The others describe the token at cursor[TOKEN].
DONE, BAD_LABEL, BAD_WEIGHT, BAD_QID, QID_MISSING, QID_UNEXPECTED, BAD_BYTE = range(7)
BAD_INDEX, INDEX_LOW, INDEX_HIGH, BAD_VALUE, OVERFLOW, DUPLICATE, SUM_OVERFLOW = range(7, 14)

_U = np.uint64
_FNV_START, _FNV_PRIME = _U(0xCBF29CE484222325), _U(0x100000001B3)
_MIX_1, _MIX_2, _30, _27, _31 = _U(0xBF58476D1CE4E5B9), _U(0x94D049BB133111EB), _U(30), _U(27), _U(31)


@inlined
def _ends_token(c):
    """Whether `c` is a blank, tab, line feed, carriage return or the start of a comment."""
    return c == 32 or c == 10 or c == 9 or c == 13 or c == 35


@helper
def _number_apart(p):
    """number_at, compiled once for callers where speed does not matter."""
    return number_at(p)


@helper
def _mixed(h):
    """The finaliser of splitmix64: every bit of the result depends on every bit of `h`."""
    h = (h ^ (h >> _30)) * _MIX_1
    h = (h ^ (h >> _27)) * _MIX_2
    return h ^ (h >> _31)


@helper
def _hashed(p):
    """(hash, position after the token): of the number if the token before the colon is one, else FNV-1a of its bytes."""
    number, end, fits = whole_at(p)
    if fits and byte_at(end) == 58:
        return _mixed(number), end
    h = _FNV_START
    while byte_at(p) > 32 and byte_at(p) != 35 and byte_at(p) != 58 and byte_at(p) != 127:
        h = (h ^ _U(byte_at(p))) * _FNV_PRIME
        p += 1
    return _mixed(h), p


@helper
def _sort(indices, data, start, stop):
    """Sort indices[start:stop] with data, stable, in place; the same length after `stop` is scratch (merge sort, bottom up)."""
    n = stop - start
    source, target = start, stop
    width = 1
    while width < n:
        for left in range(0, n, 2 * width):
            middle, right = min(left + width, n), min(left + 2 * width, n)
            i, j = left, middle
            for k in range(left, right):
                if j >= right or (i < middle and indices[source + i] <= indices[source + j]):
                    indices[target + k], data[target + k] = indices[source + i], data[source + i]
                    i += 1
                else:
                    indices[target + k], data[target + k] = indices[source + j], data[source + j]
                    j += 1
        source, target = target, source
        width *= 2
    if source != start:
        for i in range(start, stop):
            indices[i], data[i] = indices[i + n], data[i + n]


@helper
def _merge(indices, data, start, stop, last):
    """Combine entries of equal index into their sum, or keep the last; returns the new stop."""
    write = start
    read = start
    while read < stop:
        index, value = indices[read], np.float64(data[read])
        read += 1
        while read < stop and indices[read] == index:
            value = np.float64(data[read]) if last else value + np.float64(data[read])
            read += 1
        indices[write], data[write] = index, value
        write += 1
    return write


@helper
def _finite(data, start, stop):
    """Whether all of data[start:stop] are finite."""
    while start < stop and np.isfinite(data[start]):
        start += 1
    return start == stop


@helper
def _drop_zeros(indices, data, start, stop):
    """Remove entries of value 0; returns the new stop."""
    write = start
    for read in range(start, stop):
        if data[read] != 0:
            indices[write], data[write] = indices[read], data[read]
            write += 1
    return write


@helper
def looked_up(start, end, starts, numbers, pending, cursor):
    """The value of the token from `start` to `end`, if it is among the `numbers` at `starts` (sorted); else it is pending."""
    low, high = 0, len(starts)
    while low < high:
        middle = (low + high) // 2
        if starts[middle] < start:
            low = middle + 1
        else:
            high = middle
    if low < len(starts) and starts[low] == start:
        return numbers[low]
    pending[cursor[PENDING], 0], pending[cursor[PENDING], 1] = start, end
    cursor[PENDING] += 1
    return 0.0


@helper
def _skip_comment(p):
    """The position of the line feed, or of a NUL byte, from p on."""
    while byte_at(p) != 10 and byte_at(p) != 0:
        p += 1
    return p


@kernel
def parse(buffer, stop, rules, rows, cursor, pending, starts, numbers):
    """Parse whole lines buffer[cursor[POSITION]:stop] into `rows` until the end or the first refused line.

    buffer   uint8, with buffer[stop] a line feed and PADDING bytes from there on
    pending  int64 (stop//2 + 1, 2): receives (start, end) of tokens without a value, (start, ~end) if they are labels; if
             cursor[PENDING] is not 0 afterwards (as it is before), the output is invalid, and the text must be parsed again
    starts, numbers   positions (sorted) and values of tokens that an earlier run left pending; nan refuses a label

    cursor (int64, CURSOR) is updated; with a code other than DONE it stands at the start of the refused line, counts included.
    """
    origin = np.int64(buffer.ctypes.data)
    stop += origin
    indptr, indices, data = rows.indptr, rows.indices, rows.data
    row, entry, line, p, qid_mode = cursor[ROW], cursor[ENTRY], cursor[LINE], origin + cursor[POSITION], cursor[QID]
    comments, unsorted_rows, zeros, underflows, duplicates = 0, 0, 0, 0, 0
    top, bottom = cursor[TOP], cursor[BOTTOM]
    code, token, line_start = DONE, p, p
    hashing, shift = rules.hash_bits > 0, _U(64 - rules.hash_bits)
    while p < stop:
        line_start = token = p
        while byte_at(p) == 32 or byte_at(p) == 9:
            p += 1
        c = byte_at(p)
        if c == 10 or c == 13 or c == 35:
            if c == 35:
                p = _skip_comment(p)
                comments += 1
            elif c == 13:
                p += 1
            if byte_at(p) != 10:
                code, token = BAD_BYTE, p - (c == 13)
                break
            p += 1
            line += 1
            continue

        token = p
        if rules.no_labels:
            colon = False
            while not _ends_token(byte_at(p)):
                colon |= byte_at(p) == 58
                p += 1
            p = token if colon else p  # a feature: the row has no label
            label = 0.0
        elif rules.label_tokens:
            colon = -1
            while not _ends_token(byte_at(p)) and not (byte_at(p) == 58 and rules.label_weights):
                colon = p if byte_at(p) == 58 and colon < 0 else colon
                p += 1
            if colon >= 0:
                p = token  # an empty label: this token is a feature
            label = looked_up(token - origin, ~(p - origin), starts, numbers, pending, cursor)
        else:
            label, p, status = _number_apart(p)
            if status == PENDING_NUMBER:
                label = looked_up(token - origin, p - origin, starts, numbers, pending, cursor)
            elif status == MALFORMED:
                label = np.nan
        if not np.isfinite(label):
            code = BAD_LABEL
            break
        weight = 1.0
        if rules.label_weights and byte_at(p) == 58 and not rules.no_labels:
            p += 1
            start = p
            weight, p, status = _number_apart(p)
            if status == PENDING_NUMBER:
                weight = looked_up(start - origin, p - origin, starts, numbers, pending, cursor)
            if status == MALFORMED or not 0.0 <= weight < np.inf or not _ends_token(byte_at(p)):
                code = BAD_WEIGHT
                break
        if p > token and not _ends_token(byte_at(p)):
            code = BAD_LABEL
            break
        while byte_at(p) == 32 or byte_at(p) == 9:
            p += 1

        qid = _U(0)
        if byte_at(p) == 113 and byte_at(p + 1) == 105 and byte_at(p + 2) == 100 and byte_at(p + 3) == 58:
            token = p
            if qid_mode == QID_FORBIDDEN:
                code = QID_UNEXPECTED
                break
            qid, p, fits = whole_at(p + 4)
            if not fits or not _ends_token(byte_at(p)):
                code = BAD_QID
                break
            row_qid = QID_REQUIRED
        else:
            row_qid = QID_FORBIDDEN
            if qid_mode == QID_REQUIRED:
                code, token = QID_MISSING, p
                break

        stored, previous, disordered, repeated, row_zeros, row_underflows = entry, np.int64(-1), False, False, 0, 0
        row_top, row_bottom = top, bottom
        while True:
            while byte_at(p) == 32 or byte_at(p) == 9:
                p += 1
            token = p
            c = byte_at(p)
            if c == 10 or c == 13 or c == 35:
                break
            if hashing:
                h, p = _hashed(p)
                index = np.int64(h >> shift)
                if p == token or byte_at(p) != 58:
                    code = BAD_INDEX
                    break
            else:
                number, p, fits = whole_at(p)
                if p == token or byte_at(p) != 58:
                    code = BAD_INDEX
                    break
                index = np.int64(number)
                if not fits or index > rules.last:
                    code = INDEX_HIGH
                    break
                index -= rules.base
                if index < 0:
                    code = INDEX_LOW
                    break
            start = p + 1
            value, p, status = number_at(start)
            if status != OK:
                if status == PENDING_NUMBER:
                    value = looked_up(start - origin, p - origin, starts, numbers, pending, cursor)
                elif status == MALFORMED:
                    code = BAD_VALUE
                    break
            c = byte_at(p)
            if c != 32 and not _ends_token(c):
                code = BAD_VALUE
                break
            data[stored] = value
            if not np.isfinite(data[stored]):
                code = OVERFLOW
                break
            if data[stored] == 0:
                if value != 0.0 or status != OK:
                    row_underflows += 1
                else:
                    row_zeros += 1
            if index <= previous:
                disordered |= index < previous
                repeated |= index == previous
            previous = index
            row_top, row_bottom = max(row_top, index), min(row_bottom, index)
            indices[stored] = index
            stored += 1
        if code != DONE:
            break
        if c == 35:
            p = _skip_comment(p)
        elif c == 13:
            p += 1
        if byte_at(p) != 10:
            code, token = BAD_BYTE, p - (c == 13)
            break

        if disordered:
            _sort(indices, data, entry, stored)
        if disordered or repeated:
            token = line_start
            merged = _merge(indices, data, entry, stored, rules.duplicates == LAST)
            if merged < stored:
                if rules.duplicates == ERROR:
                    code = DUPLICATE
                    break
                if not _finite(data, entry, merged):
                    code = SUM_OVERFLOW
                    break
            duplicates += stored - merged
            stored = merged
        if not rules.keep_zeros and (row_zeros + row_underflows > 0 or repeated or disordered):
            stored = _drop_zeros(indices, data, entry, stored)
        p += 1
        line += 1
        zeros += row_zeros
        underflows += row_underflows
        unsorted_rows += disordered
        top, bottom = row_top, row_bottom
        rows.y[row], rows.qid[row], rows.weight[row] = label, np.int64(qid), weight
        row += 1
        entry = stored
        indptr[row] = entry
        qid_mode = row_qid

    cursor[POSITION] = (p if code == DONE else line_start) - origin
    cursor[ROW], cursor[ENTRY], cursor[LINE], cursor[QID] = row, entry, line, qid_mode
    cursor[CODE], cursor[TOKEN] = code, token - origin
    cursor[COMMENTS] += comments
    cursor[UNSORTED] += unsorted_rows
    cursor[ZEROS] += zeros
    cursor[UNDERFLOWS] += underflows
    cursor[DUPLICATES] += duplicates
    cursor[TOP], cursor[BOTTOM] = top, bottom
