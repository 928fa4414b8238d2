"""Endless text from a seed, half of it damaged, against slow references: svmlight, Vowpal Wabbit, CSV, TSV and JSON lines.

As in fuzzing.py; a step yields how many lines or rows were compared.
"""

from __future__ import annotations

import json
import math
import random

import numpy as np
from reference import delimited

_BLOCKS = [16, 64, 1000, 1 << 14]


# --- Vowpal Wabbit ---

_NAMES = [b"a", b"b", b"c", b"word", b"x=1,2", b"12", "hä".encode(), b"^", b"f^a", b"\xff\xfe"]
_NUMBERS = [b"1", b"0", b"-0", b"0.5", b"-7.", b".25", b"+3e2", b"0.1234567", b"-0.1234567", b"1e-60", b"16777217"]
_NUMBERS += [b"9007199254740993.00000000000000000001"]
_ODD_NUMBERS = [b"nan", b"inf", b"-Infinity", b"1e400", b"3e38", b"1e39", b"0x1p3", b"1_0", b"1e", b".", b"+", b"--1", b"1,5"]
_ODD_NUMBERS += [b"1f", b"\xff"]
_VW_BYTES = b"0123456789+-.eE: \t|'^abx\r\0\xff\xc3"
_NAMES_OF_RECIPE = (b"a", b"f^a", b"f^b", b"g^word", "g^hä".encode())


def _vw_line(rng: random.Random) -> bytes:
    number = lambda: rng.choice(_ODD_NUMBERS if rng.random() < 0.003 else _NUMBERS)  # noqa: E731
    blank = rng.choice([b" ", b" ", b"\t", b"  "])
    head = blank.join([number() for _ in range(rng.choice([1, 1, 1, 2, 2, 0 if rng.random() < 0.1 else 1]))])
    if rng.random() < 0.5:
        head = head.split(blank)[0] + blank + rng.choice([b"1", b"2.5", b"0"])
    parts = [head + rng.choice([blank, blank, blank + b"'tag", blank + b"tag"])]
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        space = rng.choice([b"", b"f", b"f", b"g"])
        if space and rng.random() < 0.15:
            space += b":" + number()
        words = [rng.choice(_NAMES) + (b":" + number() if rng.random() < 0.4 else b"") for _ in range(rng.randrange(5))]
        parts.append(space + blank + blank.join(words) + rng.choice([b"", blank]))
    return b"|".join(parts) + rng.choice([b"", b"", b"\r"])


def _damaged(rng: random.Random, line: bytes, alphabet: bytes, share: float) -> bytes:
    """With probability `share`, a few bytes in one place are others."""
    if rng.random() >= share:
        return line
    at = rng.randrange(len(line) + 1)
    return line[:at] + bytes(rng.choices(alphabet, k=rng.randrange(3))) + line[at + rng.randrange(3) :]


# --- tables ---

_CELLS: dict[str, list[bytes]] = {
    "y": [b"1", b"-1", b"0", b"2.5"],
    "n": [b"1", b"0", b"-0.5", b"3e2", b"0.1234567", b" 7", b"+4\t", b"", b"NA", b"nan", b"-NaN", b"16777217", b".5", b"5."],
    "c": [b"a", b"b", b"NA", b"", b"two words", "größer".encode(), b"x=1*y", b"1.0", b"null", b"\xef\xbb\xbfz", b" a"],
    "t": [b"", b"some words and some more", "Σίσυφος İstanbul ſx".encode(), b"a bb ccc", b"x_1 1.5"],
    "w": [b"1", b"2.5", b"0", b"7"],
    "z": [b"", b"anything", b"NULL"],
}
_CELLS["c"] += [b'say "x", y', b"two\nlines", b"cr\rhere", b"tab\there", b"a,b"]
_CELLS["z"] += [b'"', b"x\r\ny"]
_MISSING = {b"", b"NA", b"nan", b"-NaN", b"null"}
_CELLS |= {"m": _CELLS["n"], "d": _CELLS["c"]}
_ODD_CELLS = {"n": [b"inf", b"-Infinity", b"1e400", b"0x10", b"1_0", b"1e", b"cheap", b"1,5", b"--1", b" ", b"3e38", b"NAN"]}
_ODD_CELLS |= {"w": [b"-1", b"inf", b"", b"w"], "y": [b"", b"NA", b"word", b"inf", b" 1"], "q": [b"-1", b"1.5", b"", b"0"]}
_TABLE_BYTES = b"019+-.eE \t,\"\r\nab\0\xff\xc3;'"


def _spec(rng: random.Random) -> delimited.Spec:
    given = [name for name in "nmcdtwzq" if rng.random() < (0.2 if name in "wq" else 0.6)]
    given += [] if set(given) & set("nmcdt") else ["n"]
    columns = ["y", *given]
    rng.shuffle(columns)
    ours = {role: tuple(name for name in names if name in given) for role, names in _ROLES.items()}
    return delimited.Spec(
        tuple(columns),
        **ours,
        cross=("c", "d") if {"c", "d"} <= set(given) and rng.random() < 0.5 else (),
        weight="w" if "w" in given else None,
        qid="q" if "q" in given else None,
        label_map=rng.choice([None, None, {"1": 1.0, "-1": -1.0, "2.5": 2.0, "0": 0.0}]),
        labelled=rng.random() < 0.8,
        skips=rng.random() < 0.4,
        missing=rng.choice(["own", "own", "zero", "error"]),
        bits=rng.choice([None, None, 3, 18]),
        dtype=rng.choice(["float64", "float64", "float32"]),
    )


_ROLES = {"numeric": "nm", "categorical": "cd", "text": "t"}


def _cell(rng: random.Random, name: str, row: int, spec: delimited.Spec, damaged: bool, delimiter: bytes) -> bytes:
    if damaged and name in _ODD_CELLS and rng.random() < 0.01:
        cell = rng.choice(_ODD_CELLS[name])
    elif name == "q":
        cell = b"%d" % (row // 3)
    else:
        cell = rng.choice(_CELLS[name])
        if spec.missing == "error" and name in "nmcd" and cell in _MISSING and rng.random() < 0.98:
            cell = b"1"
    if rng.random() < 0.1 or any(byte in cell for byte in (delimiter, b'"', b"\n", b"\r")):
        cell = b'"' + cell.replace(b'"', b'""') + b'"'
    return cell


_JSON_BYTES = b'019+-.eE ,:"{}[]nulltrue\\ab\0\xff\xc3'


def _json_line(rng: random.Random, spec: delimited.Spec, full: bool = False) -> bytes:
    row: dict[str, object] = {}
    for name in spec.columns:
        cell = rng.choice(_CELLS[name])
        if name in "nmy":
            value = delimited.number(cell)
            row[name] = None if value is None or value != value else int(value) if value.is_integer() else value
            if row[name] is None and (name == "y" or spec.missing == "error") and rng.random() < 0.98:
                row[name] = 1
        else:
            row[name] = cell.decode() or (None if spec.missing != "error" or name == "t" else "a")
        if full and (row[name] is None or name in "cd"):
            row[name] = 1 if name in "nmy" else "a"  # a word among categories: they are text, whatever else they look like
        elif row[name] is None and rng.random() < 0.5:
            del row[name]
    return json.dumps(row, ensure_ascii=rng.random() < 0.5, separators=rng.choice([(",", ":"), (", ", " : ")])).encode()


def _same_features(found: dict, expected: dict, dtype: str) -> bool:
    """An entry of value 0 is as good as none."""
    for key in found.keys() | expected.keys():
        (mine,), values = found.get(key, [0.0]), expected.get(key, [0.0])
        total = float(np.dtype(dtype).type(math.fsum(values)))
        if mine != total and not (len(values) > 2 and abs(mine - total) <= 1e-6 * math.fsum(map(abs, values))):
            return False
    return True
