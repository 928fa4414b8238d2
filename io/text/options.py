"""How to read svmlight text: options, and recipes as options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamcut.errors import BadInputError, UsageError
from streamcut.foundation.fields import INT64_MAX
from streamcut.io.recipe.recipe import LabelRule, Recipe

if TYPE_CHECKING:
    from streamcut.io.conversion.options import ConvertOptions
    from streamcut.io.formats.registry import Raw


@dataclass(frozen=True)
class SvmlightOptions:
    """How to read svmlight text: options of `convert`, described and checked there. Raises UsageError for combinations.

    index_base    0, 1, or None: found by a full scan before the first block; needs n_features, and files that can be read twice
    n_features    None: refuse features beyond int32, which are probably typing errors, unless `wide_index`
    hash_bits     numbers or names (any bytes) are hashed; colliding entries are summed
    dtype         in "float32" overflow is refused, underflow to 0 is counted
    label_map     with it, every label must be a key
    group_by_qid  the rows will be grouped later: rows of a qid need not be contiguous
    no_labels     rows need no labels, and labels present are skipped
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
        if self.n_features is not None and self.n_features >= INT64_MAX:
            raise UsageError(f"n_features: {self.n_features} is too large; the most is {INT64_MAX - 1}")
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


def recipe_of(options: SvmlightOptions, index_base: int | None) -> Recipe:
    """The recipe of rows read with `options`."""
    return Recipe(
        form="hashed" if options.hash_bits else "numbers",
        hash_bits=options.hash_bits,
        index_base=index_base,
        dtype=options.dtype,
        duplicates="sum" if options.hash_bits else options.duplicates,
        labels=LabelRule(tuple((options.label_map or {}).items()), options.multilabel, options.label_weights),
    )


def by_recipe(recipe: Recipe) -> dict[str, Any]:
    """The options that read text into the features and labels of `recipe`; a label may be a word, or its number."""
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


def of_conversion(options: ConvertOptions) -> SvmlightOptions:
    """Those of `convert`, or of its recipe."""
    base = 1 if options.index_base is None else options.index_base
    named = {name: getattr(options, name) for name in SvmlightOptions.__dataclass_fields__ if hasattr(options, name)}
    named |= {"index_base": None if base == "auto" else base, "dtype": options.dtype or "float32"}
    named["max_errors"] = 1000 if options.max_errors is None else options.max_errors
    return SvmlightOptions(**named | ({} if options.recipe is None else by_recipe(options.recipe)))


def of_model(recipe: Recipe, raw: Raw, where: str) -> SvmlightOptions:
    """Those that read rows for a model. Raises BadInputError and UsageError for a model that takes other rows."""
    raw.expect_no_columns("svmlight text has no columns")
    if recipe.table is not None:
        raise BadInputError(
            f"{where}: svmlight text, but the model takes {recipe.in_words()}; give it a table, or say its --format"
        )
    if recipe.hash_bits is not None and raw.index_base is not None:
        raise UsageError("index_base: the model hashes the features as they are written, so their numbers have no first one")
    named = by_recipe(recipe) if raw.index_base is None else {**by_recipe(recipe), "index_base": raw.index_base}
    if recipe.hash_bits is None:
        named["dtype"] = "float64"  # the numbers as written; hashed sums match training bit for bit
    return SvmlightOptions(**named, no_labels=not raw.labelled, wide_index=True)
