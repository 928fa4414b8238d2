"""Kernels on words (MurmurHash3 as in FeatureHasher, words gathered from a text), and from columns to sorted CSR rows.

A word is a run of bytes.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from streamcut.compiler.jit import helper, inlined, kernel

_M = np.uint64(0xFFFFFFFF)
_C1, _C2 = np.uint64(0xCC9E2D51), np.uint64(0x1B873593)
_5, _ADD = np.uint64(5), np.uint64(0xE6546B64)
_F1, _F2 = np.uint64(0x85EBCA6B), np.uint64(0xC2B2AE35)
_0, _1, _2, _3 = (np.uint64(k) for k in range(4))
_8, _13, _15, _16, _17, _19, _24, _32 = (np.uint64(k) for k in (8, 13, 15, 16, 17, 19, 24, 32))


@inlined
def _block(h, k):
    """Mix a block of four bytes, held in the lower half of `k`, into the hash."""
    k = (k * _C1) & _M
    k = ((k << _15) | (k >> _17)) & _M
    k = (k * _C2) & _M
    h = h ^ k
    h = ((h << _13) | (h >> _19)) & _M
    return (h * _5 + _ADD) & _M


@inlined
def _finished(h, tail, length):
    """The final hash of `length` bytes; `tail` holds the incomplete last block."""
    k = (tail * _C1) & _M
    k = ((k << _15) | (k >> _17)) & _M
    h = h ^ ((k * _C2) & _M) ^ np.uint64(length)
    h = ((h ^ (h >> _16)) * _F1) & _M
    h = ((h ^ (h >> _13)) * _F2) & _M
    return h ^ (h >> _16)


@inlined
def _four(data, at):
    """data[at:at + 4] in the lower half of a number. Unsigned indices avoid the check for negative ones."""
    at = np.uint64(at)
    low = np.uint64(data[at]) | (np.uint64(data[at + _1]) << _8)
    return low | (np.uint64(data[at + _2]) << _16) | (np.uint64(data[at + _3]) << _24)


@inlined
def _hash_on(h, tail, held, length, data, start, stop):
    """The hash of a prefix of `length` bytes and data[start:stop]: state `h`, with `held` bytes (0 to 3) in `tail`."""
    length += stop - start
    shift = np.uint64(8 * held)
    while start + 4 <= stop:
        tail |= _four(data, start) << shift
        h = _block(h, tail & _M)
        tail >>= _32
        start += 4
    if start < stop:
        if start + 4 <= len(data):
            last = _four(data, start) & ((_1 << np.uint64(8 * (stop - start))) - _1)
        else:
            last = _0
            for t in range(start, stop):
                last |= np.uint64(data[t]) << np.uint64(8 * (t - start))
        tail |= last << shift
        if held + stop - start >= 4:
            h = _block(h, tail & _M)
            tail >>= _32
    return _finished(h, tail, length)


@kernel
def murmur_state(data):
    """(h, tail, held): the state of MurmurHash3_x86_32 (seed 0) after the bytes `data`."""
    h, tail, held = _0, _0, 0
    for byte in data:
        tail |= np.uint64(byte) << np.uint64(8 * held)
        held += 1
        if held == 4:
            h, tail, held = _block(h, tail), _0, 0
    return h, tail, held


@kernel
def murmur(data):
    """MurmurHash3_x86_32 (seed 0) of the bytes `data`, as uint64 below 2³²."""
    h, tail, _ = murmur_state(data)
    return _finished(h, tail, len(data))


@inlined
def bucket(h, mask):
    """|h| modulo a power of two, where h is the hash as a signed 32-bit number, as in FeatureHasher."""
    signed = np.int64(h)
    if signed >= 1 << 31:
        signed = (1 << 32) - signed
    return signed & mask


@kernel
def hashed(data, starts, stops, prefix, mask, out):
    """Write |murmur of prefix + word| & mask to `out`, int32 (words), -1 for empty words.

    Word i is data[starts[i]:stops[i]].
    """
    h, tail, held = murmur_state(prefix)
    for word in range(len(out)):
        start, stop = starts[word], stops[word]
        out[word] = -1
        if start < stop:
            out[word] = bucket(_hash_on(h, tail, held, len(prefix), data, start, stop), mask)


@kernel
def gathered(data, starts, stops, offsets, out):
    """Copy the words data[starts[i]:stops[i]] one after another to `out`; `offsets` int64 (words + 1) are filled."""
    at = 0
    for word in range(len(starts)):
        offsets[word] = at
        for t in range(starts[word], stops[word]):
            out[at] = data[t]
            at += 1
    offsets[len(starts)] = at


def bytes_of(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """(data uint8, offsets int64) of a string column without missing values."""
    wide = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    _, ends, content = texts.buffers()
    if ends is None or len(texts) == 0:
        return np.empty(0, np.uint8), np.zeros(len(texts) + 1, np.int64)
    offsets = np.frombuffer(ends, wide)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    return np.empty(0, np.uint8) if content is None else np.frombuffer(content, np.uint8), offsets


def words_from(data: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> pa.Array:
    """The words data[starts[i]:stops[i]] as large_string."""
    offsets, out = np.empty(len(starts) + 1, np.int64), np.empty(int((stops - starts).sum()), np.uint8)
    gathered(data, starts, stops, offsets, out)
    return pa.Array.from_buffers(pa.large_string(), len(starts), [None, pa.py_buffer(offsets), pa.py_buffer(out)])


def texts_of(words: pa.Array, errors: str = "surrogateescape") -> list[str]:
    """Python strings, also of bytes that are not UTF-8, for which `errors` stands."""
    try:
        return words.to_numpy(zero_copy_only=False).tolist()
    except (UnicodeDecodeError, pa.ArrowException):
        return [word.as_buffer().to_pybytes().decode("utf-8", errors) for word in words]


# --- rows ---------------------------------------------------------------------------------------------------------------------


@kernel
def tfidf(indptr, indices, idf, data):
    """Weight the words of a text in CSR rows of counts by (1 + ln count) · idf, with those of a row of length 1; `data` in place.

    idf   float64 (features), 0: not a word of this text
    """
    for row in range(len(indptr) - 1):
        square = 0.0
        for at in range(indptr[row], indptr[row + 1]):
            if idf[indices[at]] > 0.0:
                data[at] = (1.0 + math.log(data[at])) * idf[indices[at]]
                square += data[at] * data[at]
        length = math.sqrt(square)
        for at in range(indptr[row], indptr[row + 1]):
            if idf[indices[at]] > 0.0:
                data[at] /= length


@helper
def _sort(numbers):
    """Shell's sort with the gaps of Gonnet and Baeza-Yates, in place; few numbers by insertion alone."""
    gap = len(numbers) if len(numbers) > 24 else 2
    while gap > 1:
        gap = max(1, (5 * gap - 1) // 11)
        for place in range(gap, len(numbers)):
            number, at = numbers[place], place
            while at >= gap and numbers[at - gap] > number:
                numbers[at] = numbers[at - gap]
                at -= gap
            numbers[at] = number


@kernel
def assemble(fixed, values, features, ends, words, line, indptr, indices, data):
    """CSR rows of numeric columns, at most one feature of value 1 from each other column, and counted words.

    Equal features of a row are summed, values of 0 left out.

    fixed     int32 (p), increasing: the feature of each numeric column; values float64 (p, n)
    features  int32 (q, n): features of other columns, negative: none
    words     int32: row i has the features words[ends[i]:ends[i + 1]], negative: none
    line      int32 (q + most words of a row): working memory
    indptr int64 (n + 1), indices int32 and data float64 ((p + q) · n + words) are filled

    Returns whether every value is 1.
    """
    at, ones = 0, True
    indptr[0] = 0
    for row in range(len(indptr) - 1):
        count = 0
        for slot in range(len(features)):
            feature = features[slot, row]
            if feature >= 0:
                line[count] = feature
                count += 1
        for word in words[ends[row] : ends[row + 1]]:
            if word >= 0:
                line[count] = word
                count += 1
        _sort(line[:count])
        start, number, slot = at, 0, 0
        while number < len(fixed) or slot < count:
            if slot == count or (number < len(fixed) and fixed[number] <= line[slot]):
                feature, value = fixed[number], values[number, row]
                number += 1
            else:
                feature, value = line[slot], 1.0
                slot += 1
            if value == 0.0:
                continue
            if at > start and indices[at - 1] == feature:
                data[at - 1] += value
                ones = False
            else:
                indices[at], data[at] = feature, value
                ones &= value == 1.0
                at += 1
        indptr[row + 1] = at
    return ones
