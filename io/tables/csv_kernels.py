"""Where lines of comma-separated values end."""

from __future__ import annotations

from streamcut.compiler.jit import kernel

_QUOTE, _FEED, _RETURN = 34, 10, 13


@kernel
def last_line_end(data, delimiter):
    """The position after the last line end in `data`, uint8, outside quotes; 0 when there is none.

    `data` begins with a line. As in Arrow, a quote opens only at the beginning of a value, and a doubled quote does not
    close it.
    """
    at, found, stop = 0, 0, len(data)
    while at < stop:
        if data[at] == _QUOTE:
            at += 1
            while at < stop:
                while at < stop and data[at] != _QUOTE:
                    at += 1
                at += 1
                if at >= stop or data[at] != _QUOTE:
                    break
                at += 1
        while at < stop:
            byte = data[at]
            at += 1
            if byte == delimiter:
                break
            if byte in (_FEED, _RETURN):
                found = at
                break
    return found
