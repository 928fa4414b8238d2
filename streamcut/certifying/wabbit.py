"""The text that Vowpal Wabbit writes with --readable_model, as a problem.

Features named by numbers, in the unnamed namespace, have the numbers as indices if these are below 2^bits; other names are
hashed, and no store has that hash. A resumable run divides its weights by the factor to which --l2 has shrunk them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

import numpy as np

from streamcut.certifying.problem import Problem
from streamcut.errors import CorruptError, OtherProgramError

_CONSTANT = 11650396  # whose last bits are the index of the constant feature
_HEAD = re.compile(r"^(?:Version|Id|Min label|Max label|bits|lda|\d+ ngram|\d+ skip|options|Checksum)\b")
_IDLE = {"--sgd", "--bfgs", "--adaptive", "--normalized", "--invariant", "--noconstant"}  # options that do not affect features
_TAKING = {"--learning_rate", "--power_t", "--initial_t", "--hash_seed", "--bit_precision", "--mem", "--l2", "--loss_function"}
_STATES = ("gravity", "l1_state")


def wabbit(path: str, text: str, index_base: int, expect: Callable[[int], None]) -> Problem:
    """The weights in `text`, where the first feature is number `index_base`; `expect` is called with the bytes needed.

    Raises OtherProgramError for models whose features or scores are not those of rows, CorruptError.
    """
    lines = text.split("\n")
    head: dict[str, str] = {}
    body: list[str] = []
    for line in lines:
        name, _, value = line.partition(":")
        if not line.strip() or name == "":
            continue
        if _HEAD.match(line):
            head[name] = value.strip()
        elif line[0].isdigit() and ":" in line:
            body.append(line)
        elif " " in line:  # from a resumable run
            name, _, value = line.rpartition(" ")
            head[name] = value
        else:
            raise OtherProgramError(
                f"{path}: {line[:60]!r} is no weight of a feature's number; write the model with --readable_model"
            )
    _expect_linear(path, head)
    bits = int(head["bits"])
    if not 1 <= bits <= 40:
        raise CorruptError(f"{path}: {bits} bits of an index")
    indices = np.array([int(line.partition(":")[0]) for line in body], np.int64)
    rest = [line.partition(":")[2].split() for line in body]
    weights = np.array([float(words[0]) for words in rest], np.float64) * float(head.get("l2_state", 1.0))
    if (len(indices) and not 0 <= indices.min() <= indices.max() < 1 << bits) or len(np.unique(indices)) < len(indices):
        raise CorruptError(f"{path}: indices of features are not all different and below 2^{bits}")
    constant = indices == _CONSTANT & ((1 << bits) - 1)
    intercept = float(weights[constant].sum())
    indices, weights = indices[~constant] - index_base, weights[~constant]
    if len(indices) and indices.min() < 0:
        raise OtherProgramError(f"{path} has a feature of number 0, so its rows count from 0: give --index-base 0")
    d = int(indices.max(initial=-1)) + 1
    expect(8 * d)
    w = np.zeros(d)
    w[indices] = weights
    return Problem(w, intercept, path)


def _expect_linear(path: str, head: dict[str, str]) -> None:
    """Raise OtherProgramError unless scores are Σ w_j x_j of the features in the rows."""
    words = iter(shlex.split(head.get("options", "")))
    for word in words:
        name, equals, value = word.partition("=")
        if name in _TAKING:
            value if equals else next(words, None)
        elif name == "--link" and (value if equals else next(words, "")) in ("identity", "logistic"):
            continue
        elif name not in _IDLE:
            raise OtherProgramError(
                f"{path}: vw's {word} makes scores of more than the features of a row, which certify does not"
            )
    for name, value in head.items():
        if (name.endswith((" ngram", " skip")) or name == "lda") and value not in ("", "0"):
            raise OtherProgramError(f"{path}: {name}: {value}: its features are not those of the rows")
        if name in _STATES and float(value) != 0.0:
            raise OtherProgramError(f"{path}: its weights are cut by --l1, and only ½‖w‖² is certified")
