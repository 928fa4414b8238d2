"""Kernel that copies some of the rows of a chunk."""

from streamcut.compiler.jit import kernel


@kernel
def gather(kept, indptr, indices, data, unit, out_indptr, out_indices, out_data):
    """Copy the entries of the rows that are `kept` (bool, n) one after the other; out_indptr (kept rows + 1) begins at 0.

    data is empty with `unit`, where every value is 1; then nothing is written to `out_data`.
    """
    row, at = 0, 0
    out_indptr[0] = 0
    for i in range(len(kept)):
        if kept[i]:
            for t in range(indptr[i], indptr[i + 1]):
                out_indices[at] = indices[t]
                if not unit:
                    out_data[at] = data[t]
                at += 1
            row += 1
            out_indptr[row] = at
