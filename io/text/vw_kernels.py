"""Kernel: Vowpal Wabbit lines to tokens, each copied into the buffer of its kind."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamcut.compiler.jit import kernel

BLANK, TAB, LINE_FEED, RETURN, BAR, COLON, QUOTE, CARET = 32, 9, 10, 13, 124, 58, 39, 94
HEADS = 3  # meaningful tokens before the first bar: label, importance, initial prediction


class Tokens(NamedTuple):
    """The output of `tokens`. Buffers are uint8 as large as the text (`keys`: larger by the namespaces); ends are int64.

    Token t of a kind is buffer[ends[t]:ends[t + 1]]. Every row has HEADS heads (empty: absent). Every entry has a key, a value
    (empty: 1) and, in `scale_of` int64, the number of its namespace's scale (an empty one: 1), whose row is in `scale_rows`
    int64. The key of a feature without a name is empty in every namespace.
    lines int64: the line of each row; indptr int64: entries of each row.
    """

    heads: np.ndarray
    head_ends: np.ndarray
    keys: np.ndarray
    key_ends: np.ndarray
    values: np.ndarray
    value_ends: np.ndarray
    scales: np.ndarray
    scale_ends: np.ndarray
    scale_of: np.ndarray
    scale_rows: np.ndarray
    lines: np.ndarray
    indptr: np.ndarray


@kernel
def counts(text, stop):
    """(lines, bars, blanks): of the first `stop` bytes of `text`, which bound the tokens of each kind."""
    lines = bars = blanks = 0
    for t in range(stop):
        lines += text[t] == LINE_FEED
        bars += text[t] == BAR
        blanks += text[t] == BLANK or text[t] == TAB or text[t] == BAR
    return lines, bars, blanks


@kernel
def key_bytes(text, stop):
    """Upper bound on the total bytes of all feature keys.

    A feature begins after a blank after a bar: there its namespace is counted, plus one for the caret; its own bytes follow.
    """
    total = namespace = 0
    inside = named = False
    for t in range(stop):
        byte = text[t]
        if byte == LINE_FEED:
            inside = False
        elif byte == BAR:
            inside, named, namespace = True, True, 0
        elif inside and byte in (BLANK, TAB):
            named = False
            total += namespace + 1
        elif inside and named:
            namespace += 1
        elif inside:
            total += 1
    return total + namespace + 1


@kernel
def tokens(text, stop, out):
    """(rows, entries, scales) of the lines in text[:stop], which ends with a line feed; `out` (Tokens) is filled in place.

    Sizes suffice: lines bound rows, bars scales, blanks entries (each begins after one), key_bytes keys, the text all else.
    A row's heads are 0: label, 1: importance, 2: initial prediction; a tag is dropped, as are tokens
    beyond HEADS.
    """
    row = entry = scale = at = 0
    head_at = key_at = value_at = scale_at = np.int64(0)
    out.indptr[0] = out.head_ends[0] = out.key_ends[0] = out.value_ends[0] = out.scale_ends[0] = 0
    line = 0
    while at < stop:
        end = at
        while text[end] != LINE_FEED:
            end += 1
        last = end - 1 if end > at and text[end - 1] == RETURN else end
        bar = at
        while bar < last and text[bar] != BAR:
            bar += 1
        blank = True
        for t in range(at, last):
            blank = blank and (text[t] == BLANK or text[t] == TAB)
        if not blank:
            heads = 0
            t = at
            while t < bar:
                while t < bar and (text[t] == BLANK or text[t] == TAB):
                    t += 1
                begin = t
                while t < bar and text[t] != BLANK and text[t] != TAB:
                    t += 1
                tag = begin < bar and (text[begin] == QUOTE or (t == bar and bar < last))
                if begin < t and not tag and heads < HEADS:
                    for b in range(begin, t):
                        out.heads[head_at] = text[b]
                        head_at += 1
                    heads += 1
                    out.head_ends[HEADS * row + heads] = head_at
            for rest in range(heads, HEADS):
                out.head_ends[HEADS * row + rest + 1] = head_at
            t = bar
            name = name_end = t
            while t < last:
                if text[t] == BAR:
                    t += 1
                    name = t
                    while t < last and text[t] != BLANK and text[t] != TAB and text[t] != COLON and text[t] != BAR:
                        t += 1
                    name_end = t
                    if t < last and text[t] == COLON:
                        t += 1
                        while t < last and text[t] != BLANK and text[t] != TAB and text[t] != BAR:
                            out.scales[scale_at] = text[t]
                            scale_at += 1
                            t += 1
                    out.scale_rows[scale] = row
                    scale += 1
                    out.scale_ends[scale] = scale_at
                    continue
                if text[t] == BLANK or text[t] == TAB:
                    t += 1
                    continue
                if name_end > name and text[t] != COLON:
                    for b in range(name, name_end):
                        out.keys[key_at] = text[b]
                        key_at += 1
                    out.keys[key_at] = CARET
                    key_at += 1
                while t < last and text[t] != BLANK and text[t] != TAB and text[t] != COLON and text[t] != BAR:
                    out.keys[key_at] = text[t]
                    key_at += 1
                    t += 1
                if t < last and text[t] == COLON:
                    t += 1
                    while t < last and text[t] != BLANK and text[t] != TAB and text[t] != BAR:
                        out.values[value_at] = text[t]
                        value_at += 1
                        t += 1
                out.scale_of[entry] = scale - 1
                entry += 1
                out.key_ends[entry], out.value_ends[entry] = key_at, value_at
            out.lines[row] = line
            row += 1
            out.indptr[row] = entry
        line += 1
        at = end + 1
    return row, entry, scale
