"""Kernel from texts to rows of hashed words and runs of words, one row at a time, without intermediate arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamcut.compiler.jit import helper, kernel
from streamcut.io.tables.text_kernels import lowered
from streamcut.io.tables.unicode import Letters
from streamcut.io.tables.word_kernels import bucket, finished, hash_more, murmur_state


class Texts(NamedTuple):
    """Text i is data[offsets[i]:offsets[i + 1]], uint8 and int64; `letters` as in the tokeniser."""

    data: np.ndarray
    offsets: np.ndarray
    letters: Letters


class Grams(NamedTuple):
    """Runs of `least` to `most` words, hashed with `prefix` (uint8) before them into mask + 1 features."""

    least: int
    most: int
    prefix: np.ndarray
    mask: int


class Work(NamedTuple):
    """Memory for one row, for texts of at most `longest` bytes: see `work_for`.

    word uint8: the words in lower case, separated by blanks; states uint64 (most, 2) and begins int64 (most, 2): of the open
    runs; found int32: the features
    """

    word: np.ndarray
    states: np.ndarray
    begins: np.ndarray
    found: np.ndarray


def most_features(size: int, least: int, most: int) -> int:
    """Most runs of words in a text of `size` bytes: a word takes two letters and a separator before the next one."""
    return (size + 1) // 3 * (most - least + 1)


def work_for(longest: int, least: int, most: int) -> Work:
    """The Work for texts of at most `longest` bytes and runs of `least` to `most` words."""
    return Work(
        np.empty(2 * longest + 8, np.uint8),
        np.empty((most, 2), np.uint64),
        np.empty((most, 2), np.int64),
        np.empty(most_features(longest, least, most), np.int32),
    )


@helper
def _sort(numbers):
    """Shell's sort with the gaps of Gonnet and Baeza-Yates, in place."""
    gap = len(numbers)
    while gap > 1:
        gap = max(1, (5 * gap - 1) // 11)
        for place in range(gap, len(numbers)):
            number, at = numbers[place], place
            while at >= gap and numbers[at - gap] > number:
                numbers[at] = numbers[at - gap]
                at -= gap
            numbers[at] = number


@helper
def _counted(found, indices, data, at):
    """Write the features found, distinct and in order, to indices[at:], and their counts to data[at:].

    They are sorted in place. Returns the position after them.
    """
    _sort(found)
    for place in range(len(found)):
        if place and found[place] == found[place - 1]:
            data[at - 1] += 1.0
        else:
            indices[at], data[at] = found[place], 1.0
            at += 1
    return at


@kernel
def hashed_words(texts, grams, work, indptr, indices, data):
    """CSR rows of `texts` with the count of each feature.

    indptr int64 (n + 1), indices int32 and data float64 (sized by `most_features` of all texts) are filled.
    Returns whether every value is 1.
    """
    h_prefix, tail_prefix, held_prefix = murmur_state(grams.prefix)
    at, ones = 0, True
    indptr[0] = 0
    for row in range(len(indptr) - 1):
        here, stop = texts.offsets[row], texts.offsets[row + 1]
        count = words = end = 0
        while here < stop:
            begin = end
            here, end, size = lowered(texts.data, here, stop, texts.letters.letters, texts.letters.lower, work.word, end)
            if size < 2:
                end = begin
                continue
            for back in range(min(grams.most - 1, words), -1, -1):  # the runs that began `back` words before
                run = (words - back) % grams.most
                h, tail, held, first = h_prefix, tail_prefix, held_prefix, begin
                if back:
                    h, tail, held = work.states[run, 0], work.states[run, 1], work.begins[run, 1]
                    first = begin - 1  # including the blank
                else:
                    work.begins[run, 0] = begin
                h, tail, held = hash_more(h, tail, held, work.word, first, end)
                work.states[run, 0], work.states[run, 1], work.begins[run, 1] = h, tail, held
                if back + 1 >= grams.least:
                    length = len(grams.prefix) + end - work.begins[run, 0]
                    work.found[count] = bucket(finished(h, tail, length), grams.mask)
                    count += 1
            work.word[end] = 32
            end += 1
            words += 1
        before = at
        at = _counted(work.found[:count], indices, data, at)
        ones &= at - before == count
        indptr[row + 1] = at
    return ones
