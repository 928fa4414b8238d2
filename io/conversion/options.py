"""The options of `convert`, checked once at the border."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from streamcut.errors import NotFoundError, UsageError
from streamcut.io.recipe.files import recipe_from
from streamcut.io.recipe.table import LABELS_AS, MISSING, MISSING_LABELS
from streamcut.io.sources.row_source import FORMATS, LISTS, TABLES
from streamcut.io.stores.spec import BACKENDS
from streamcut.opened import read_file
from streamcut.suggestions import unknown
from streamcut.systems import memory as memory_of_machine
from streamcut.units import parse_size, take_plain

_TEXT, _FILES, _COLUMNS = ("svmlight",), ("npz", "npy", "mtx", "10x"), ("anndata", LISTS)
_APPLIES = {  # options that mean something for some formats only
    "labels_as": TABLES,
    "labels": (*_FILES, *_COLUMNS, *TABLES, "vw"),
    "qid": (*_FILES, *_COLUMNS, *TABLES),
    "weights": (*_FILES, *_COLUMNS, *TABLES),
    "categorical": TABLES,
    "numeric": TABLES,
    "text": TABLES,
    "time": TABLES,
    "cross": TABLES,
    "drop": TABLES,
    "id": TABLES,
    "ngrams": TABLES,
    "missing": TABLES,
    "missing_labels": (*TABLES, "anndata", "vw"),
    "layer": ("anndata",),
    "feature_names": (*_TEXT, *_FILES, LISTS),
    "max_categories": (*TABLES, "vw"),
    "recipe": (*TABLES, *_TEXT, "vw"),
    "n_features": (*_TEXT, *_FILES, *_COLUMNS, "streamcut"),
    "duplicates": (*_TEXT, *_FILES, *_COLUMNS, "streamcut"),
    "wide_index": _TEXT,
    "max_line_bytes": _TEXT,
    "keep_zeros": (*_TEXT, *_FILES, *_COLUMNS, "streamcut"),
    "index_column": (LISTS,),
    "value_column": (LISTS,),
    "index_base": (*_TEXT, LISTS),
    "hash_bits": (*_TEXT, *TABLES, "vw"),
    "multilabel": _TEXT,
    "label_weights": _TEXT,
    "on_error": _TEXT,
    "max_errors": _TEXT,
}
_ROLES = ("categorical", "numeric", "text", "time", "cross", "drop", "id", "ngrams", "missing")
_BY_RECIPE = (*_ROLES, "labels_as", "hash_bits", "label_map", "multilabel", "label_weights", "qid", "weights")


@dataclass(frozen=True, slots=True)
class ConvertOptions:
    """Every option of `convert`, as its help explains them. `memory`: "2GB", or bytes; None: 1 GB, or what is needed.

    Raises UsageError for values out of range and for options that exclude each other.
    """

    format: str = "auto"
    labels: str | None = None
    labels_as: str = "auto"
    qid: str | None = None
    weights: str | None = None
    categorical: Any = ()  # names of columns, or names with commas between them
    numeric: Any = ()
    text: Any = ()
    time: Any = ()
    cross: Any = ()
    drop: Any = ()
    id: Any = ()
    ngrams: str | None = None
    missing: str = "own"
    missing_labels: str = "error"
    layer: str | None = None
    feature_names: Any = None  # a file with one name a line, or the names; after checking a tuple or None
    max_categories: int = 250_000
    recipe: Any = None  # a Recipe, or where one is: a model, a store, a file of JSON; after checking a Recipe or None
    index_column: str = "indices"
    value_column: str = "values"
    index_base: int | str | None = None
    n_features: int | None = None
    wide_index: bool = False
    max_line_bytes: Any = None  # as given; after checking bytes or None
    hash_bits: int | None = None
    dtype: str | None = None
    duplicates: str = "error"
    label_map: Any = None  # as given; after checking {word: label} or None
    multilabel: float | None = None
    label_weights: bool = False
    keep_zeros: bool = False
    on_error: str = "raise"
    max_errors: int | None = None
    backend: str = "zarr"
    shard_nnz: int | None = None
    shuffle: int | None = None
    split: float | None = None
    split_output: str | os.PathLike | None = None
    split_seed: int = 0
    group_by_qid: bool = False
    memory: Any = None  # as given; after checking bytes or None
    threads: int = 2
    scratch: str | os.PathLike | None = None
    resume: bool = False
    force: bool = False

    def __post_init__(self) -> None:
        take_plain(self)
        _one_of("--format", self.format, ("auto", *FORMATS))
        _one_of("--backend", self.backend, BACKENDS)
        _one_of("--dtype", self.dtype, (None, "float32", "float64"))
        _one_of("--duplicates", self.duplicates, ("error", "sum", "last"))
        _one_of("--on-error", self.on_error, ("raise", "skip"))
        _one_of("--missing", self.missing, MISSING)
        _one_of("--labels-as", self.labels_as, LABELS_AS)
        _one_of("--missing-labels", self.missing_labels, MISSING_LABELS)
        _one_of("--index-base", self.index_base, (None, 0, 1, "auto"))
        for name, least in {
            "n_features": 1,
            "max_errors": 0,
            "shard_nnz": 1,
            "max_categories": 1,
            "threads": 1,
            "shuffle": 0,
            "split_seed": 0,
        }.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise UsageError(f"{_flag(name)}: {value} is too small; the least is {least}")
        if self.hash_bits is not None and not 1 <= self.hash_bits <= 31:
            raise UsageError(f"--hash-bits: {self.hash_bits} is outside 1 … 31")
        if self.hash_bits is not None and self.n_features is not None:
            raise UsageError("--hash-bits decides the number of features; leave --n-features out")
        if self.multilabel is not None and not math.isfinite(self.multilabel):
            raise UsageError(f"--multilabel: {self.multilabel} is no label; give the number that stands in the sets")
        if self.max_errors is not None and self.on_error != "skip":
            raise UsageError("--max-errors needs --on-error skip")
        if self.split is not None and not 0 < self.split < 1:
            raise UsageError(f"--split: {self.split} is not between 0 and 1; 0.9 keeps 90 % of the rows and puts 10 % aside")
        if self.split is None and self.split_output is not None:
            raise UsageError("--split-output needs --split")
        object.__setattr__(self, "label_map", _label_map(self.label_map))
        object.__setattr__(self, "recipe", recipe_from(self.recipe))
        for name in _BY_RECIPE:
            if self.recipe is not None and getattr(self, name) != _default(name):
                raise UsageError(f"{_flag(name)}: the recipe says it already; leave it out")
        object.__setattr__(self, "memory", _bytes(self.memory))
        if isinstance(self.max_line_bytes, str):
            object.__setattr__(self, "max_line_bytes", parse_size(self.max_line_bytes, option="--max-line-bytes"))
        for name in ("memory", "max_line_bytes"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise UsageError(f"{_flag(name)}: {value} bytes are nothing; write for example 2GB")
        object.__setattr__(self, "feature_names", _feature_names(self.feature_names))
        if self.feature_names is not None:
            if self.hash_bits is not None or self.recipe is not None:
                raise UsageError("--feature-names: features that are hashed, or made by a recipe, have no names of their own")
            if self.n_features not in (None, len(self.feature_names)):
                raise UsageError(f"--feature-names: {len(self.feature_names):,} names for {self.n_features:,} features")
            object.__setattr__(self, "n_features", len(self.feature_names))

    @property
    def sorting(self) -> bool:
        return self.shuffle is not None or self.group_by_qid

    def side_files(self, kind: str) -> list[str]:
        """Files with labels, query ids and weights beside inputs of format `kind`, which cannot hold them."""
        labels = self.labels if self.labels_in_file(kind) else None
        return [path for path in (labels, self.qid, self.weights) if path is not None] if kind in _FILES else []

    def labels_in_file(self, kind: str) -> bool:
        """Whether --labels names a file beside inputs of format `kind`; "none" says that there are none."""
        return kind in _FILES and self.labels is not None and (self.labels != "none" or os.path.exists("none"))

    def require_meaning(self, kind: str) -> None:
        """Raise UsageError for an option that inputs of format `kind` cannot have, or that they need and is missing."""
        defaults = {field.name: field.default for field in fields(self)}
        for name, kinds in _APPLIES.items():
            if kind not in kinds and getattr(self, name) != defaults[name]:
                raise UsageError(f"{_flag(name)} means nothing for {kind} input; it is for {', '.join(kinds)}")
        if kind == "vw" and self.labels not in (None, "none"):
            raise UsageError(
                "--labels: VW text has its labels in the rows; only none, for rows that are to be scored, means something"
            )
        if kind == LISTS and self.index_base == "auto":
            raise UsageError("--index-base auto is for svmlight input; say whether the lists count from 0 or from 1")
        if kind in (*_FILES, *_COLUMNS) and self.labels is None:
            what = "a file with one label a row" if kind in _FILES else "the name of the column with the labels"
            raise UsageError(f"--labels is needed for {kind} input: {what}, or none for rows that are to be scored only")


def _default(name: str) -> Any:
    return ConvertOptions.__dataclass_fields__[name].default


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _one_of(flag: str, value, allowed: tuple) -> None:
    if value not in allowed:
        raise UsageError(f"{flag}: {unknown(value, [str(choice) for choice in allowed if choice is not None])}")


def _bytes(memory: int | str | None) -> int | None:
    if memory is None or memory == "auto":
        return None
    if isinstance(memory, int):
        return memory
    return parse_size(memory, option="--memory", total=memory_of_machine()[0])


def _feature_names(given: Any) -> tuple[str, ...] | None:
    """Names from a file with one a line, or from a sequence of them."""
    if given is None:
        return None
    if not isinstance(given, str | os.PathLike):
        return tuple(str(name) for name in given)
    try:
        names = read_file(given).decode("utf-8-sig").splitlines()
    except OSError as error:
        raise NotFoundError(f"--feature-names: {os.fspath(given)}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"--feature-names: {os.fspath(given)}: not UTF-8 ({error})") from None
    if not names or not all(name.strip() for name in names):
        line = next((number for number, name in enumerate(names, start=1) if not name.strip()), 1)
        raise UsageError(f"--feature-names: {os.fspath(given)}:{line}: no name on this line; write one a line, for every feature")
    return tuple(name.strip() for name in names)


def _label_map(given: Mapping[str, float] | str | None) -> dict[str, float] | None:
    """{word: label} from `a=1,b=2`, from a file with one such pair a line, or from a mapping."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        pairs: list[Any] = [[str(word), label] for word, label in given.items()]
    else:
        if "=" in given:
            lines = given.split(",")
        else:
            try:
                lines = [line for line in read_file(given).decode("utf-8-sig").splitlines() if line.strip()]
            except OSError as error:
                raise NotFoundError(
                    f"--label-map: {given!r} is neither word=number,… nor a readable file ({error.strerror})"
                ) from None
            except UnicodeDecodeError as error:
                raise UsageError(f"--label-map: {given}: not UTF-8 ({error})") from None
        pairs = [line.rsplit("=", 1) for line in lines]
    found: dict[str, float] = {}
    for pair in pairs:
        try:
            word, label = pair[0].strip(), float(pair[1])
        except (IndexError, ValueError):
            raise UsageError(f"--label-map: {'='.join(map(str, pair))!r} is not word=number") from None
        if not math.isfinite(label):
            raise UsageError(f"--label-map: {word!r} becomes {label}; labels are finite numbers")
        if word in found:
            raise UsageError(f"--label-map: {word!r} is given twice")
        found[word] = label
    if not found:
        raise UsageError("--label-map: no pair word=number")
    return found
