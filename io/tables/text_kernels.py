"""Kernels from text to words: runs of two letters or more in lower case, and n-grams of words or of characters.

The words are those of scikit-learn.
Letters are looked up in tables made from Python's own rules (`text_words.py`). The caller has already lower-cased characters that
depend on context (Σ) or become two characters (İ).
"""

from __future__ import annotations

import numpy as np

from streamcut.compiler.jit import inlined, kernel

_BAD = 0x10FFFF + 1  # represents bytes that are not UTF-8: neither a letter nor a blank


@inlined
def _code_point(data, at, stop):
    """(code point that begins at data[at], its length in bytes); invalid UTF-8 is taken byte by byte."""
    first = np.int64(data[at])
    if first < 0x80:
        return first, 1
    if 0xC2 <= first < 0xE0 and at + 1 < stop:
        return (first & 0x1F) << 6 | np.int64(data[at + 1] & 0x3F), 2
    if 0xE0 <= first < 0xF0 and at + 2 < stop:
        return (first & 0x0F) << 12 | np.int64(data[at + 1] & 0x3F) << 6 | np.int64(data[at + 2] & 0x3F), 3
    if 0xF0 <= first < 0xF5 and at + 3 < stop:
        low = np.int64(data[at + 2] & 0x3F) << 6 | np.int64(data[at + 3] & 0x3F)
        return (first & 0x07) << 18 | np.int64(data[at + 1] & 0x3F) << 12 | low, 4
    return np.int64(_BAD), 1


@inlined
def _put(out, at, point):
    """Write a code point as UTF-8 at out[at]; returns the position after it."""
    if point < 0x80:
        out[at] = point
        return at + 1
    if point < 0x800:
        out[at] = 0xC0 | point >> 6
        out[at + 1] = 0x80 | point & 0x3F
        return at + 2
    if point < 0x10000:
        out[at] = 0xE0 | point >> 12
        out[at + 1] = 0x80 | point >> 6 & 0x3F
        out[at + 2] = 0x80 | point & 0x3F
        return at + 3
    out[at] = 0xF0 | point >> 18
    out[at + 1] = 0x80 | point >> 12 & 0x3F
    out[at + 2] = 0x80 | point >> 6 & 0x3F
    out[at + 3] = 0x80 | point & 0x3F
    return at + 4


@inlined
def lowered(data, here, stop, letters, lower, out, at):
    """Copy letters from data[here:stop] in lower case to out[at:], up to the first non-letter, which is skipped.

    Returns (position in data, position in out, letters copied).
    """
    size, known = 0, len(letters)
    while here < stop:
        point = np.int64(data[here])
        if point < 0x80:
            here += 1
            if letters[point] == 0:
                break
            out[at] = lower[point]
            at += 1
            size += 1
            continue
        point, length = _code_point(data, here, stop)
        here += length
        if point >= known or letters[point] == 0:
            break
        at = _put(out, at, np.int64(lower[point]))
        size += 1
    return here, at, size


@kernel
def tokens(data, offsets, letters, lower, out, rows, starts, stops):
    """The words of texts data[offsets[i]:offsets[i + 1]], in lower case, with one blank between those of a text.

    letters  uint8, lower int32: whether a code point is part of a word, and its lower case; code points beyond are not letters
    out      uint8: 2 bytes per byte of data, plus 8, suffice; rows int64 (n + 1): row i has words rows[i] to rows[i + 1] − 1
    starts, stops   int64: bounds of a word in `out`; half the bytes of data, plus 1, suffice

    Returns the number of words. A word has two letters or more. For b ≥ 2 bytes it takes 3b/2 + 1 ≤ 2b: lower case turns two
    bytes into three at most, and lengthens no others; a single letter, dropped before the next word, has at most 4.
    """
    count, at = 0, 0
    rows[0] = 0
    for row in range(len(offsets) - 1):
        here, stop = offsets[row], offsets[row + 1]
        while here < stop:
            begin = at
            here, at, size = lowered(data, here, stop, letters, lower, out, at)
            if size < 2:
                at = begin
                continue
            starts[count], stops[count] = begin, at
            count += 1
            out[at] = 32
            at += 1
        rows[row + 1] = count
    return count


@kernel
def grams(rows, starts, stops, least, most, by_size, gram_rows, gram_starts, gram_stops):
    """Runs of `least` to `most` neighbouring words or characters of a row, by their first one, or (`by_size`) by their length.

    As one byte separates words, a run of them is a word, too. `gram_rows`, `gram_starts` and `gram_stops` are filled.
    """
    count = 0
    gram_rows[0] = 0
    for row in range(len(rows) - 1):
        begin, size = rows[row], rows[row + 1] - rows[row]
        for outer in range(most - least + 1 if by_size else size):
            for inner in range(size if by_size else most - least + 1):
                first, length = (inner, least + outer) if by_size else (outer, least + inner)
                if first + length > size:
                    break
                gram_starts[count], gram_stops[count] = starts[begin + first], stops[begin + first + length - 1]
                count += 1
        gram_rows[row + 1] = count


@inlined
def _is_blank(point):
    r"""Whether Python's `\s` matches."""
    if point < 0x80:
        return 9 <= point <= 13 or 28 <= point <= 32
    if point in (0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000):
        return True
    return 0x2000 <= point <= 0x200A


@kernel
def characters(data, offsets, lower, out, rows, places):
    """Texts in lower case, with runs of two blanks or more as one blank.

    `out` receives them as UTF-8, `places` (int64) the position of each character, and last their end; row i has those from number
    rows[i] (int64, n + 1) on.
    Returns the number of characters. 3 bytes in `out` per byte of data, and a place per byte and one more, suffice: an invalid
    byte becomes three, lower case turns two into three at most.
    """
    count, at, known = 0, 0, len(lower)
    rows[0] = 0
    for row in range(len(offsets) - 1):
        here, stop = offsets[row], offsets[row + 1]
        while here < stop:
            point, length = _code_point(data, here, stop)
            here += length
            if _is_blank(point):
                run = 1
                while here < stop:
                    following, length = _code_point(data, here, stop)
                    if not _is_blank(following):
                        break
                    here += length
                    run += 1
                if run > 1:
                    point = np.int64(32)
            elif point < known:
                point = np.int64(lower[point])
            places[count] = at
            at = _put(out, at, point if point != _BAD else np.int64(0xFFFD))
            count += 1
        rows[row + 1] = count
    places[count] = at
    return count
