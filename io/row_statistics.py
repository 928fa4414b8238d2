"""The statistics of a chunk of rows that streamcut.io.manifest keeps."""

import numpy as np

from streamcut.compiler.jit import kernel


@kernel
def row_statistics(indptr, indices, data, unit):
    """(largest |value|, largest squared row norm, longest row, largest index or -1); `unit`: every value is 1."""
    largest, norm, longest, top = 0.0, 0.0, 0, -1
    for i in range(len(indptr) - 1):
        start, stop = indptr[i], indptr[i + 1]
        longest = max(longest, stop - start)
        if stop > start:
            top = max(top, indices[stop - 1])
        if unit:
            norm = max(norm, float(stop - start))
            largest = max(largest, 1.0 if stop > start else 0.0)
            continue
        total = 0.0
        for t in range(start, stop):
            value = np.float64(data[t])  # Numba's float() keeps float32
            total += value * value
            largest = max(largest, abs(value))
        norm = max(norm, total)
    return largest, norm, longest, top
