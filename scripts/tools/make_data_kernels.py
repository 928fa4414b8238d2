"""Kernels of make_data.py: random numbers in, rows of a sparse matrix or their text out."""

from streamcut.compiler.jit import kernel

BELOW_ONE = 1 - 2**-40  # keeps field number + uniform inside its field when the sum is rounded


@kernel
def find(u, cumulative, guide, bins):
    """The first c with cumulative[c] > u. Bin b of the guide (length bins + 2) bounds the search for b ≤ u·bins < b + 1."""
    b = int(u * bins)
    low, high = guide[b], guide[b + 1]
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] <= u:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def fill_text_rows(lengths, gaps, jitter, cumulative, guide, bins, idf, planted, indptr, indices, data, margins):
    """Fill CSR rows and ⟨planted, row⟩. Row i takes lengths[i] + 1 of `gaps` (exponential) and lengths[i] of `jitter` (uniform).

    Partial sums of n + 1 exponential gaps, divided by their total, are n uniforms in ascending order: so columns come
    out sorted and equal ones stand together, without a sort.
    """
    g = j = out = 0
    for i in range(len(lengths)):
        n = lengths[i]
        total = 0.0
        for k in range(g, g + n + 1):
            total += gaps[k]
        start, previous, u = out, -1, 0.0
        for k in range(n):
            u += gaps[g + k] / total
            c = find(min(u, 1.0), cumulative, guide, bins)
            value = idf[c] * (1.0 + jitter[j + k])
            if c == previous:
                data[out - 1] += value
            else:
                indices[out] = c
                data[out] = value
                previous = c
                out += 1
        g += n + 1
        j += n
        norm = 0.0
        for t in range(start, out):
            norm += data[t] * data[t]
        scale = 1.0 / norm**0.5
        margin = 0.0
        for t in range(start, out):
            data[t] *= scale
            margin += planted[indices[t]] * data[t]
        margins[i] = margin
        indptr[i + 1] = out


@kernel
def fill_click_rows(uniforms, cumulative, guide, bins, planted, indices, margins):
    """Fill the columns of one-hot rows and ⟨planted, row⟩; the categories of field f end at cumulative f + 1."""
    rows, fields = uniforms.shape
    for i in range(rows):
        margin = 0.0
        for f in range(fields):
            c = find(f + uniforms[i, f] * BELOW_ONE, cumulative, guide, bins)
            indices[i * fields + f] = c
            margin += planted[c]
        margins[i] = margin


@kernel
def put_number(number, text, at):
    """Write a number ≥ 0 in decimal; returns the position after it."""
    digits, rest = 1, number
    while rest >= 10:
        rest //= 10
        digits += 1
    for k in range(at + digits - 1, at - 1, -1):
        text[k] = 48 + number % 10
        number //= 10
    return at + digits


@kernel
def format_rows(indptr, indices, data, y, signed, qid, text):
    """svmlight lines into `text`; returns their length. Empty `data`: all 1; empty `qid`: none. Values up to 1, six decimals."""
    at = 0
    for i in range(len(y)):
        label = int(y[i])
        if signed or label < 0:
            text[at] = 45 if label < 0 else 43
            at += 1
        at = put_number(abs(label), text, at)
        if len(qid):
            for character in b" qid:":
                text[at] = character
                at += 1
            at = put_number(qid[i], text, at)
        for t in range(indptr[i], indptr[i + 1]):
            text[at] = 32
            at = put_number(indices[t] + 1, text, at + 1)
            text[at] = 58
            at += 1
            millionths = 1_000_000 if len(data) == 0 else int(data[t] * 1e6 + 0.5)
            if millionths >= 1_000_000:
                text[at] = 49
                at += 1
                continue
            text[at], text[at + 1] = 48, 46
            for k in range(at + 7, at + 1, -1):
                text[k] = 48 + millionths % 10
                millionths //= 10
            at += 8
        text[at] = 10
        at += 1
    return at
