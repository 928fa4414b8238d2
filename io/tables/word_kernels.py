"""Kernels from words to features: MurmurHash3 as in FeatureHasher, or a dictionary with open addressing.

A word is a run of bytes of a column. Its key is a prefix (`site=`) and the word; features are hashes of keys, or numbers of keys
in a dictionary. Rows share a word if the Arrow column is dictionary-encoded: then it is hashed or looked up once per batch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamcut.compiler.jit import helper, inlined, kernel

NONE, UNSEEN = -1, -2  # no feature: no word; a word not in the dictionary
MISSING, NOTHING = -1, -2  # codes of rows without a word: it is missing; the column has none in this row
_NOT_YET = -3

DONE, FULL, TOO_MANY = range(3)  # how a run ended
ROW, KEYS, ARENA, UNSEEN_ROWS, STATE = range(5)  # slots of the state of a run

_M = np.uint64(0xFFFFFFFF)
_C1, _C2 = np.uint64(0xCC9E2D51), np.uint64(0x1B873593)
_5, _ADD = np.uint64(5), np.uint64(0xE6546B64)
_F1, _F2 = np.uint64(0x85EBCA6B), np.uint64(0xC2B2AE35)
_0, _1, _2, _3 = (np.uint64(k) for k in range(4))
_8, _13, _15, _16, _17, _19, _24, _32 = (np.uint64(k) for k in (8, 13, 15, 16, 17, 19, 24, 32))


class Words(NamedTuple):
    """Word number w is data[starts[w]:stops[w]]; an empty word is a missing value, too. `codes` int32: the word of each row, or
    MISSING, or NOTHING.

    With `direct`, row i has word i and there are no codes.
    """

    data: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    codes: np.ndarray
    direct: bool


class Dictionary(NamedTuple):
    """Keys in insertion order. A slot holds the number of a key + 1, 0 if it is free.

    hashes uint32, ends int64 (one more than keys: where each ends in `arena`), origins int64: the row of a key's first
    occurrence, and its feature once it has one.
    """

    slots: np.ndarray
    hashes: np.ndarray
    ends: np.ndarray
    origins: np.ndarray
    arena: np.ndarray


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
def finished(h, tail, length):
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
def hash_more(h, tail, held, data, start, stop):
    """The state of the hash after data[start:stop], which follows `held` bytes (0 to 3) in `tail`."""
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
        held += stop - start
        if held >= 4:
            h = _block(h, tail & _M)
            tail >>= _32
            held -= 4
    return h, tail, held


@inlined
def _hash_on(h, tail, held, length, data, start, stop):
    """The hash of a prefix of `length` bytes and data[start:stop]: state `h`, with `held` bytes (0 to 3) in `tail`."""
    length += stop - start
    h, tail, held = hash_more(h, tail, held, data, start, stop)
    return finished(h, tail, length)


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
    return finished(h, tail, len(data))


@inlined
def bucket(h, mask):
    """|h| modulo a power of two, where h is the hash as a signed 32-bit number, as in FeatureHasher."""
    signed = np.int64(h)
    if signed >= 1 << 31:
        signed = (1 << 32) - signed
    return signed & mask


@helper
def _equal(dictionary, key, prefix, data, start, stop):
    """Whether key number `key` is prefix + data[start:stop]."""
    at = dictionary.ends[key]
    if dictionary.ends[key + 1] - at != len(prefix) + stop - start:
        return False
    for t in range(len(prefix)):
        if dictionary.arena[at + t] != prefix[t]:
            return False
    at += len(prefix) - start
    for t in range(start, stop):  # noqa: SIM110
        if dictionary.arena[at + t] != data[t]:
            return False
    return True


@helper
def _append(dictionary, slot, h, prefix, data, start, stop, row, state):
    """Insert a new key into the free `slot`; returns its number."""
    key, at = state[KEYS], state[ARENA]
    for t in range(len(prefix)):
        dictionary.arena[at + t] = prefix[t]
    at += len(prefix)
    for t in range(start, stop):
        dictionary.arena[at + t - start] = data[t]
    at += stop - start
    dictionary.slots[slot] = key + 1
    dictionary.hashes[key], dictionary.origins[key], dictionary.ends[key + 1] = h, row, at
    state[KEYS], state[ARENA] = key + 1, at
    return key


@helper
def _place(dictionary, h, prefix, data, start, stop):
    """(number of the key or NONE, its slot or the free slot for it)."""
    mask = len(dictionary.slots) - 1
    slot = np.int64(h) & mask
    while dictionary.slots[slot] != 0:
        key = dictionary.slots[slot] - 1
        if dictionary.hashes[key] == h and _equal(dictionary, key, prefix, data, start, stop):
            return key, slot
        slot = (slot + 1) & mask
    return np.int64(NONE), slot


@kernel
def rehash(dictionary, keys):
    """Fill the empty slots of `dictionary` with its first `keys` keys (in place)."""
    mask = len(dictionary.slots) - 1
    for key in range(keys):
        slot = np.int64(dictionary.hashes[key]) & mask
        while dictionary.slots[slot] != 0:
            slot = (slot + 1) & mask
        dictionary.slots[slot] = key + 1


@kernel
def hashed(words, prefix, absent, mask, seen, out):
    """Write the feature of each row's word to `out`, int32 (rows): |murmur of its key| & mask, NONE without a word.

    prefix, absent   uint8: put before every word; the whole key of a missing word, empty: it has no feature
    seen             int32 (words), from `not_yet`: each word is hashed once; unused with words.direct
    """
    data, starts, stops = words.data, words.starts, words.stops
    h_prefix, tail, held = murmur_state(prefix)
    n_prefix = len(prefix)
    missing = np.int64(NONE) if len(absent) == 0 else bucket(murmur(absent), mask)
    if words.direct:
        for row in range(len(out)):
            start, stop = starts[row], stops[row]
            if start == stop:
                out[row] = missing
            else:
                out[row] = bucket(_hash_on(h_prefix, tail, held, n_prefix, data, start, stop), mask)
        return
    for row in range(len(out)):
        word = words.codes[row]
        if word < 0:
            out[row] = missing if word == MISSING else NONE
            continue
        feature = np.int64(seen[word])
        if feature == _NOT_YET:
            start, stop = starts[word], stops[word]
            feature = missing
            if start != stop:
                feature = bucket(_hash_on(h_prefix, tail, held, n_prefix, data, start, stop), mask)
            seen[word] = feature
        out[row] = feature


@kernel
def keys_of(words, prefix, absent, learn, dictionary, most, rows, first_row, seen, state, out):
    """Write the key number of each row's word to `out`, int32, from row state[ROW] on; returns how the run ended.

    prefix, absent, seen   as in `hashed`
    learn                  new keys are appended; otherwise they are UNSEEN, and counted in state[UNSEEN_ROWS]
    most                   limit on the keys of the dictionary; TOO_MANY: one more is needed
    rows, first_row        int64: the row of each word, if not its own number (else empty), relative to `first_row`
    state                  int64 (STATE), in place. FULL: enlarge the dictionary and call again
    """
    data, starts, stops = words.data, words.starts, words.stops
    h_prefix, tail, held = murmur_state(prefix)
    missing_key = np.int64(NONE if len(absent) == 0 else _NOT_YET)
    for row in range(state[ROW], len(out)):
        word = row if words.direct else words.codes[row]
        if word == NOTHING:
            out[row] = NONE
            continue
        missing = word == MISSING or starts[word] == stops[word]
        start, stop = (0, 0) if missing else (starts[word], stops[word])
        key = missing_key if missing else np.int64(_NOT_YET if words.direct else seen[word])
        if key == _NOT_YET:
            slot = np.int64(0)
            if missing:
                h = murmur(absent)
                key, slot = _place(dictionary, h, absent, data, start, start)
            else:
                h = _hash_on(h_prefix, tail, held, len(prefix), data, start, stop)
                key, slot = _place(dictionary, h, prefix, data, start, stop)
            if key == NONE and not learn:
                key = np.int64(UNSEEN)
            elif key == NONE:
                keys, size = state[KEYS], len(absent) if missing else len(prefix) + stop - start
                full = 2 * (keys + 1) > len(dictionary.slots) or keys + 1 >= len(dictionary.ends)
                if keys == most or full or state[ARENA] + size > len(dictionary.arena):
                    state[ROW] = row
                    return TOO_MANY if keys == most else FULL
                origin = first_row + (rows[row] if len(rows) else row)
                if missing:
                    key = _append(dictionary, slot, h, absent, data, start, start, origin, state)
                else:
                    key = _append(dictionary, slot, h, prefix, data, start, stop, origin, state)
            if missing:
                missing_key = key
            elif not words.direct:
                seen[word] = key
        out[row] = key
        state[UNSEEN_ROWS] += key == UNSEEN
    state[ROW] = len(out)
    return DONE


def not_yet(words: Words) -> np.ndarray:
    """The initial `seen` of `hashed` and `keys_of`."""
    return np.full(0 if words.direct else len(words.starts), _NOT_YET, np.int32)


@kernel
def renumber(keys, features):
    """Replace key numbers in `keys`, int32, by their `features`, int64 (keys), in place; negative ones stay."""
    for place in range(len(keys)):
        if keys[place] >= 0:
            keys[place] = features[keys[place]]


@kernel
def crossed(first, second, between, starts, stops, data):
    """Join the words of two columns with `between` (uint8); empty if either is missing. Returns the bytes written.

    starts, stops int64 (rows) and data uint8 are filled; data must be large enough.
    """
    at = 0
    for row in range(len(starts)):
        a = row if first.direct else first.codes[row]
        b = row if second.direct else second.codes[row]
        starts[row] = at
        if a >= 0 and b >= 0 and first.stops[a] > first.starts[a] and second.stops[b] > second.starts[b]:
            for t in range(first.starts[a], first.stops[a]):
                data[at] = first.data[t]
                at += 1
            for t in range(len(between)):
                data[at] = between[t]
                at += 1
            for t in range(second.starts[b], second.stops[b]):
                data[at] = second.data[t]
                at += 1
        stops[row] = at
    return at


@kernel
def word_bytes(words, rows):
    """Total bytes of the words of all rows."""
    total = 0
    for row in range(rows):
        word = row if words.direct else words.codes[row]
        if word >= 0:
            total += words.stops[word] - words.starts[word]
    return total
