"""Endless text from a seed, half of it damaged, against slow references: svmlight, Vowpal Wabbit, CSV, TSV and JSON lines.

As in fuzzing.py; a step yields how many lines or rows were compared.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from kit.svmlight_fuzz import ALPHABET, VALID, random_line
from reference import delimited, wabbit

from inside.kit.svmlight_fuzz import OPTIONS, agrees
from streamcut.errors import BadInputError
from streamcut.foundation.chunk import Chunk
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.formats.registry import FORMATS
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.recipe.table import Spelling
from streamcut.io.tables.opening import OpenedTables
from streamcut.io.text.vw import VwOptions, VwSource

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


def svmlight(rng: random.Random, made: Path) -> Iterator[str]:
    """A file of one to sixty lines, some of them damaged."""
    path = made / "fuzz.svm"
    while True:
        kind = rng.randrange(3)
        if kind == 0:
            content = bytearray(VALID)
            for _ in range(rng.randint(0, 6)):
                at = rng.randrange(len(content) + 1)
                content[at : at + rng.randint(0, 4)] = bytes(rng.choices(ALPHABET, k=rng.randint(0, 4)))
        elif kind == 1:
            content = bytearray(rng.choices(ALPHABET, k=rng.randint(0, 80)))
        else:
            qid = rng.random() < 0.5
            content = bytearray(b"\n".join(random_line(rng, qid) for _ in range(rng.randint(1, 60))))
        options = type(OPTIONS[0])(**{**vars(rng.choice(OPTIONS)), "max_errors": 10**9})
        agrees(path, bytes(content), options, threads=1, block_bytes=rng.choice(_BLOCKS))
        yield f"{content.count(10) + 1}"


def wabbit_text(rng: random.Random, made: Path) -> Iterator[str]:
    """A file of one to sixty lines; where a line is refused, the lines after it are a file again."""
    path = made / "fuzz.vw"
    recipe = Recipe("vw", dtype="float32", duplicates="sum", names=tuple(name.decode() for name in _NAMES_OF_RECIPE))
    while True:
        options = VwOptions(
            rng.choice(["read", "read", "skip", "none"]),
            rng.choice([None, 3, 18]),
            dtype=rng.choice(["float32", "float64"]),
            keep_zeros=rng.random() < 0.3,
            recipe=rng.choice([None, None, recipe]),
        )
        lines, damaged = [_vw_line(rng) for _ in range(rng.randint(1, 60))], rng.random() < 0.5
        if damaged:
            lines = [_damaged(rng, line, _VW_BYTES, 0.1) for line in lines]
        compared = 0
        while lines:
            block, mark = rng.choice(_BLOCKS), rng.choice([b"", b"\xef\xbb\xbf"])
            text = mark + b"\n".join([b"1 1 | first", *lines]) + rng.choice([b"", b"\n"])
            stop = _vw_agrees(path, text, options, block)
            compared += (len(lines) + 1 if stop is None else stop) - 1
            lines = [] if stop is None else lines[stop - 1 :]
        yield f"{compared}"


def _vw_agrees(path: Path, text: bytes, options: VwOptions, block: int) -> int | None:
    """The number of the first line that both refuse."""
    path.write_bytes(text)
    rows, stop = wabbit.parse_file(text, options.labels, options.dtype)
    kept = [row for row in rows if options.labels == "none" or row.label is not None]
    names = None if options.recipe is None else list(_NAMES_OF_RECIPE)
    columns = wabbit.Columns(options.hash_bits if names is None else None, names)
    for row in rows:  # numbered as they come, those of rows without a label, too
        for key in row.features:
            columns.of(key)
    source, at, said = VwSource([str(path)], options, block_bytes=block), 0, ""
    try:
        for chunk, _ in source.blocks():
            for i in range(chunk.n_rows):
                _same_row(chunk, i, kept[at], columns, options)
                at += 1
    except BadInputError as error:
        said = str(error)
    if "the sum of duplicate entries overflows" in said:  # it names no line
        assert any(_overflows(row, options) for row in rows), text
        return rows[-1].line if stop is None else stop
    assert (f":{stop}: " in said) if stop is not None else (not said and at == len(kept)), (text, options, stop, said)
    return stop


def _same_row(chunk: Chunk, i: int, row: wabbit.Row, columns: wabbit.Columns, options: VwOptions) -> None:
    assert chunk.y[i] == (0.0 if row.label is None else row.label), row
    assert chunk.weight is not None
    assert chunk.weight[i] == (1.0 if row.importance is None else row.importance), row
    expected: dict[int, list[float]] = {}
    for key, values in row.features.items():
        if (feature := columns.of(key)) is not None:
            expected.setdefault(feature, []).extend(values)
    entries = slice(chunk.indptr[i], chunk.indptr[i + 1])
    found = dict(zip(chunk.indices[entries].tolist(), chunk.data[entries].tolist(), strict=True))
    assert list(found) == sorted(set(found)), row
    assert set(found) <= set(expected), row
    for feature, values in expected.items():
        total = float(np.dtype(options.dtype).type(sum(values) if len(values) < 3 else math.fsum(values)))
        exact = found.get(feature, 0.0) == total
        near = len(values) > 2 and abs(found.get(feature, 0.0) - total) <= 1e-6 * math.fsum(map(abs, values))
        assert exact or near, (row, feature, found, total)
        assert options.keep_zeros <= (feature in found), row
        assert options.keep_zeros or found.get(feature, 1.0) != 0, row


def _overflows(row: wabbit.Row, options: VwOptions) -> bool:
    """Whether values of equal keys, or of keys that meet in a column, may add up to more than the type holds."""
    return sum(abs(value) for values in row.features.values() for value in values) > np.finfo(options.dtype).max


def csv(rng: random.Random, made: Path) -> Iterator[str]:
    """A file of one to forty rows; then the same without the rows that the reference refuses, until there are none."""
    yield from _delimited(rng, made / "fuzz.csv", "csv", ",")


def tsv(rng: random.Random, made: Path) -> Iterator[str]:
    yield from _delimited(rng, made / "fuzz.tsv", "tsv", "\t")


def _delimited(rng: random.Random, path: Path, kind: str, delimiter: str) -> Iterator[str]:
    while True:
        spec, damaged, end = _spec(rng), rng.random() < 0.5, rng.choice([b"\n", b"\n", b"\r\n", b"\r"])
        rows = []
        for i in range(rng.randint(1, 40)):
            row = delimiter.encode().join(_cell(rng, name, i, spec, damaged, delimiter.encode()) for name in spec.columns)
            row = delimiter.encode() * (len(spec.columns) - 1) if rng.random() < 0.03 else row
            rows.append((_damaged(rng, row, _TABLE_BYTES, 0.04) if damaged else row) + end * rng.choice([1, 1, 1, 1, 2]))
        header, compared = delimiter.join(spec.columns).encode() + end, 0
        text = rng.choice([b"", b"", b"\xef\xbb\xbf"]) + header + b"".join(rows)
        text = text if rng.random() < 0.5 else text.removesuffix(end)
        while True:
            found = delimited.records(text, delimiter)[1:]
            wrong = _table_agrees(path, kind, text, [record.cells for record in found], spec, rng)
            compared += 1 if wrong else len(found)
            kept = [each.raw for i, each in enumerate(found) if i not in wrong and each.raw.count(b'"') % 2 == 0]
            if not wrong or not kept or len(kept) == len(found):
                break
            text = header + b"".join(kept)
        yield f"{compared}"


def jsonl(rng: random.Random, made: Path) -> Iterator[str]:
    """As csv; a name that is not there, and null, are missing values."""
    path = made / "fuzz.jsonl"
    while True:
        spec, damaged = replace(_spec(rng), weight=None, qid=None), rng.random() < 0.5
        spec = replace(spec, columns=tuple(name for name in spec.columns if name not in "wq"), label_map=None)
        if spec.text:  # null is a missing text, and CSV has no null
            spec = replace(spec, missing="own")
        lines = [_json_line(rng, spec) for _ in range(rng.randint(1, 40))]
        lines = [_damaged(rng, line, _JSON_BYTES, 0.04) if damaged else line for line in lines]
        lines = [line for line in lines if not delimited.other_names(line, spec)]  # those would be columns, too
        compared, first = 0, _json_line(rng, spec, full=True)
        while lines:
            text = b"".join(line + b"\n" * rng.choice([1, 1, 1, 2]) for line in (first, *lines))
            kept, cells, wrong = delimited.objects(text, spec)
            found = _table_agrees(path, "jsonl", text, cells, spec, rng, wrong)
            compared += 1 if found else len(cells)
            lines = [line for i, line in enumerate(kept) if i not in found][1:] if found and None not in found else []
        yield f"{compared}"


def _table_agrees(
    path: Path,
    kind: str,
    text: bytes,
    cells: list[list[bytes]],
    spec: delimited.Spec,
    rng: random.Random,
    wrong: Collection[int | None] = (),
) -> set[int | None]:
    """The rows that both refuse; `wrong` are so whatever is in their cells."""
    path.write_bytes(text)
    expected, wrong = ([], set(wrong)) if wrong else delimited.parse(cells, spec)
    if kind != "jsonl" and delimited.never_closed(text.removeprefix(b"\xef\xbb\xbf"), "\t" if kind == "tsv" else ","):
        wrong = wrong | {None}
    options = ConvertOptions(
        format=kind,
        standardise=False,
        text_weights="counts",
        labels="y" if spec.labelled else "none",
        numeric=spec.numeric,
        categorical=spec.categorical,
        text=spec.text,
        cross=["*".join(spec.cross)] if spec.cross else (),
        drop=[name for name in spec.columns if name == "z" or (name == "y" and not spec.labelled)],
        weights=spec.weight,
        qid=spec.qid,
        label_map=spec.label_map,
        missing=spec.missing,
        missing_labels="skip" if spec.skips else "error",
        hash_bits=spec.bits,
        dtype=spec.dtype,
    )
    found, names, said = [], None, ""
    try:
        tables = OpenedTables([FORMATS[kind].file(str(path), Spelling())], options)
        rows = tables.rows(rng.choice(_BLOCKS), 1 << 16, rng.choice([1, 1, 1, 2]))
        chunks = [chunk for chunk, _ in rows.blocks()]
        names = rows.recipe().names
        found = [_row_of_table(chunk, i, names) for chunk in chunks for i in range(chunk.n_rows)]
    except BadInputError as error:
        said = str(error)
    where = re.search(r"row (-?\d+) \(0-based\)", said)
    refused = {int(where[1])} if where else {None} if said else set()
    if kind == "jsonl" and where:  # to Arrow what follows an object in its line is in the next row
        refused = refused & wrong or {each - 1 for each in refused if each is not None}
    elif kind == "jsonl" and said and wrong:  # Arrow doesn't always say which
        refused = wrong
    assert (refused <= wrong and refused) if wrong else not refused, (text, spec, said, wrong)
    if not wrong:
        assert len(found) == len(expected), (text, spec)
        for mine, theirs in zip(found, expected, strict=True):
            assert mine[:3] == (theirs.label, theirs.weight, theirs.qid), (text, spec, mine, theirs)
            assert _same_features(mine.features, theirs.features, spec.dtype), (text, spec, mine, theirs)
    return wrong


def _row_of_table(chunk: Chunk, i: int, names: tuple[str, ...] | None) -> delimited.Row:
    entries = slice(chunk.indptr[i], chunk.indptr[i + 1])
    indices = chunk.indices[entries].tolist()
    assert indices == sorted(set(indices))
    values = [1.0] * len(indices) if chunk.data is None else chunk.data[entries].tolist()
    keys = [names[j] for j in indices] if names is not None else indices
    weight = None if chunk.weight is None else float(chunk.weight[i])
    qid = None if chunk.qid is None else int(chunk.qid[i])
    return delimited.Row(float(chunk.y[i]), weight, qid, {key: [value] for key, value in zip(keys, values, strict=True)})


TEXTS: dict[str, Callable[[random.Random, Path], Iterator[str]]] = {
    "svmlight": svmlight,
    "vw": wabbit_text,
    "csv": csv,
    "tsv": tsv,
    "jsonl": jsonl,
}
