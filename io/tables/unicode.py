"""Python's rules for letters and lower case as tables, for the kernels of text."""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import NamedTuple

import numpy as np

BY_CONTEXT = (b"\xc4\xb0", b"\xce\xa3")  # İ becomes two characters, Σ depends on what follows: left to Python


class Letters(NamedTuple):
    r"""letters uint8: whether `\w` matches a code point; lower int32: its lower case."""

    letters: np.ndarray
    lower: np.ndarray


@cache
def letters_of(every: bool) -> Letters:
    """The Letters of ASCII, or of `every` code point."""
    size = sys.maxunicode + 1 if every else 128
    whole = "".join(map(chr, range(size)))
    letters = np.zeros(size, np.uint8)
    for run in re.finditer(r"\w+", whole):
        letters[run.start() : run.end()] = 1
    lower = [ord(small) if len(small := letter.lower()) == 1 else ord(letter) for letter in whole]
    return Letters(letters, np.array(lower, np.int32))


def lowered_by_context(data: bytes) -> bool:
    """Whether UTF-8 text holds characters whose lower case no table can give."""
    return any(special in data for special in BY_CONTEXT)
