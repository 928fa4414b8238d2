"""Kernel: entries of rows in another order."""

from streamcut.compiler.jit import kernel


@kernel
def gather_rows(starts, lengths, source, out):
    """Fill `out` with source[starts[i] : starts[i] + lengths[i]] for i = 0, 1, …, one after the other (in place)."""
    position = 0
    for i in range(len(starts)):
        start = starts[i]
        for t in range(lengths[i]):
            out[position] = source[start + t]
            position += 1
