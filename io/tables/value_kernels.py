"""Kernels on category values: the spelling of whole numbers, and escaping in crosses."""

from __future__ import annotations

import numpy as np

from streamcut.compiler.jit import kernel

_ZERO, _NINE, _DOT, _MINUS = np.uint8(ord("0")), np.uint8(ord("9")), np.uint8(ord(".")), np.uint8(ord("-"))
_STAR, _EQUALS, _BACKSLASH = np.uint8(ord("*")), np.uint8(ord("=")), np.uint8(ord("\\"))


@kernel
def whole_numbers(data, starts, stops, odd):
    """Shorten words that are whole numbers (`3.0`, `3.`, `-0`) to their digits, in place; `odd`: which are not, bool (words).

    Leading zeros are not allowed: `007` is odd. Empty words are not odd. Returns the number of odd ones.
    """
    count = 0
    for word in range(len(starts)):
        at, stop = starts[word], stops[word]
        odd[word] = False
        if at == stop:
            continue
        first = at + 1 if data[at] == _MINUS else at
        last = first
        while last < stop and _ZERO <= data[last] <= _NINE:
            last += 1
        whole = last > first and (data[first] != _ZERO or last == first + 1)
        end = last
        if whole and end < stop and data[end] == _DOT:
            end += 1
            while end < stop and data[end] == _ZERO:
                end += 1
        if not whole or end < stop:
            odd[word] = True
            count += 1
            continue
        stops[word] = last
        if data[first] == _ZERO:  # -0
            starts[word] = first
    return count


@kernel
def specials(data, starts, stops):
    """The number of bytes in these words that are special in keys: `*`, `=` and the backslash."""
    count = 0
    for word in range(len(starts)):
        for t in range(starts[word], stops[word]):
            byte = data[t]
            count += byte in (_STAR, _EQUALS, _BACKSLASH)
    return count


@kernel
def escape(data, starts, stops, out_starts, out_stops, out):
    """Write the words with a backslash before each special byte to `out`, which is large enough (see `specials`)."""
    at = 0
    for word in range(len(starts)):
        out_starts[word] = at
        for t in range(starts[word], stops[word]):
            byte = data[t]
            if byte in (_STAR, _EQUALS, _BACKSLASH):
                out[at] = _BACKSLASH
                at += 1
            out[at] = byte
            at += 1
        out_stops[word] = at
