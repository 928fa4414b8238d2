"""How svmlight text is to be read: options, and recipes as options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamcut.errors import UsageError
from streamcut.io.recipe.recipe import LabelRule, Recipe

_NO_LIMIT = np.iinfo(np.int64).max


@dataclass(frozen=True)
class SvmlightOptions:
    """How to read svmlight text. Raises UsageError for values and combinations that make no sense.

    index_base    0, 1, or None: found by a full scan before the first block; needs n_features, and files that can be read twice
    n_features    refuse features beyond; None: beyond int32, which are rather typing errors, unless `wide_index`
    wide_index    take all that fit int64
    hash_bits     hash features, numbers or names (any bytes), into 2**hash_bits columns; what meets in a column is summed
    dtype         "float32" (overflow is refused, underflow to 0 is counted) or "float64"
    duplicates    the same feature twice in a row: "error", "sum" or "last"
    label_map     {token: label}; with it, every label must be a key
    multilabel    labels are sets such as `1,2`, possibly empty: y is +1 where this label is in the set and -1 elsewhere
    label_weights labels may be `label:weight` with a weight ≥ 0, 1 by default
    keep_zeros    keep entries whose value is 0
    on_error      "raise", or "skip": leave refused lines out and report them, at most max_errors of them
    group_by_qid  the rows are going to be grouped later: qid need not stand together
    no_labels     rows need no labels, and those that stand there are passed over
    """

    index_base: int | None = 1
    n_features: int | None = None
    wide_index: bool = False
    hash_bits: int | None = None
    dtype: str = "float32"
    duplicates: str = "error"
    label_map: dict[str, float] | None = None
    multilabel: float | None = None
    label_weights: bool = False
    keep_zeros: bool = False
    on_error: str = "raise"
    max_errors: int = 1000
    group_by_qid: bool = False
    no_labels: bool = False

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("index_base", self.index_base, (0, 1, None)),
            ("dtype", self.dtype, ("float32", "float64")),
            ("duplicates", self.duplicates, ("error", "sum", "last")),
            ("on_error", self.on_error, ("raise", "skip")),
        ):
            if value not in allowed:
                raise UsageError(f"{name} must be one of {', '.join(map(str, allowed))}, not {value!r}")
        if self.n_features is not None and not 1 <= self.n_features < _NO_LIMIT:
            raise UsageError(f"n_features must be at least 1, not {self.n_features}")
        if self.hash_bits is not None and not 1 <= self.hash_bits <= 31:
            raise UsageError(f"hash_bits must be from 1 to 31, not {self.hash_bits}")
        if self.hash_bits is not None and (self.n_features is not None or self.index_base is None):
            raise UsageError(
                "hash_bits gives the number of features; it goes with neither n_features nor an automatic index base"
            )
        if self.index_base is None and self.n_features is None:
            raise UsageError(
                "an automatic index base needs --n-features, to tell features that begin at 1 from a feature 0 that never occurs"
            )
        if self.multilabel is not None and self.label_weights:
            raise UsageError("multilabel and label_weights exclude each other: an empty label and a weight look the same")
        if self.label_map is not None and not all(np.isfinite(label) for label in self.label_map.values()):
            raise UsageError("label_map: labels must be finite numbers")
        if self.max_errors < 0:
            raise UsageError(f"max_errors must be at least 0, not {self.max_errors}")


def recipe_of(options: SvmlightOptions, index_base: int | None) -> Recipe:
    """How rows that were read by `options` became features."""
    return Recipe(
        form="hashed" if options.hash_bits else "numbers",
        hash_bits=options.hash_bits,
        index_base=index_base,
        dtype=options.dtype,
        duplicates="sum" if options.hash_bits else options.duplicates,
        labels=LabelRule(tuple((options.label_map or {}).items()), options.multilabel, options.label_weights),
    )


def by_recipe(recipe: Recipe) -> dict[str, Any]:
    """The options with which text gives the features and labels of `recipe`; a label may be a word, or its number."""
    words = dict(recipe.labels.words)
    numbers = {spelled: number for number in words.values() for spelled in (f"{number:g}", f"{number:+g}")}
    return {
        "index_base": 1 if recipe.index_base is None else recipe.index_base,
        "hash_bits": recipe.hash_bits,
        "dtype": recipe.dtype or "float32",
        "duplicates": "error" if recipe.hash_bits is not None else recipe.duplicates,
        "label_map": {**numbers, **words} or None,
        "multilabel": recipe.labels.multilabel,
        "label_weights": recipe.labels.weighted,
    }
