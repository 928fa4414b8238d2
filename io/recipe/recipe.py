"""The recipe of a data set: what a reader of raw input must do to get the same features and labels.

It is JSON in `recipe.json` of a store and in the array `recipe` of a model. Its content determines features and labels;
it does not record where the rows came from.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Self

from streamcut.errors import BadInputError
from streamcut.io.recipe.table import CATEGORICAL, INTEGER, NUMBER, Comparison, Table, TableColumn

VERSIONS = (1, 2, 3, 4)  # 1: no table; 2: a table; 3: standardised numbers, tf-idf; 4: own nulls, or no names
_USUAL = {"centre": 0.0, "spread": 1.0, "documents": 0, "frequencies": (), "nulls": (), "unnamed": 0}  # left out of the JSON
FORMS = ("numbers", "hashed", "table", "vw")


@dataclass(frozen=True, slots=True)
class LabelRule:
    """The meaning of the input's labels.

    words       ((word, number), …): labels are words; empty: labels are numbers
    multilabel  labels are sets: +1 where this one is in the set, −1 elsewhere
    weighted    labels may be label:weight
    column      of a table, that holds the labels
    comparison  labels are its outcome: +1 where it holds, −1 elsewhere
    none        unlabelled: rows to be scored only
    learned     words were numbered in order of appearance, so the numbers mean nothing
    type        of the column's values, which gives a label one spelling in every container; None: not of a table
    """

    words: tuple[tuple[str, float], ...] = ()
    multilabel: float | None = None
    weighted: bool = False
    column: str | None = None
    comparison: Comparison | None = None
    none: bool = False
    learned: bool = False
    type: str | None = None

    @property
    def names(self) -> dict[float, str]:
        """{number: word}; empty when two words share a number, since the inverse is then ambiguous."""
        if self.comparison is not None:
            return {-1.0: self.comparison.opposite, 1.0: str(self.comparison)}
        names = {number: word for word, number in self.words}
        return names if len(names) == len(self.words) else {}


@dataclass(frozen=True)
class Recipe:
    """How rows became features.

    form        "numbers": the input gives the number of each feature; "hashed": names or numbers of features in svmlight text are
                hashed into 2**hash_bits of them; "table": columns of a table, as `table` says; "vw": Vowpal Wabbit's text
    hash_bits   of a table or of VW text: its keys are hashed; None: `names` is their dictionary
    index_base  number of the first feature in svmlight text; None for other input
    dtype       of values as read, None: as in the input
    duplicates  handling of a feature twice in one row: "error", "sum" or "last"
    names       of the features, None when they have none
    layer       of an AnnData file that was read instead of X
    """

    form: str = "numbers"
    hash_bits: int | None = None
    index_base: int | None = None
    dtype: str | None = None
    duplicates: str = "error"
    labels: LabelRule = LabelRule()
    names: tuple[str, ...] | None = None
    table: Table | None = None
    layer: str | None = None

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ValueError(f"form {self.form!r} is unknown")
        fits = self.form in ("table", "vw") or (self.hash_bits is not None) == (self.form == "hashed")
        if not fits or not 1 <= (self.hash_bits or 1) <= 31:
            raise ValueError(f"form {self.form!r} with hash_bits {self.hash_bits!r}")
        if (self.table is not None) != (self.form == "table"):
            raise ValueError(f"form {self.form!r} and a table do not go together")
        if self.index_base not in (None, 0, 1) or self.dtype not in (None, "float32", "float64"):
            raise ValueError(f"index_base {self.index_base!r}, dtype {self.dtype!r}")
        if self.duplicates not in ("error", "sum", "last"):
            raise ValueError(f"duplicates {self.duplicates!r}")

    @cached_property
    def prepared(self) -> dict[object, Any]:
        """Data that row readers derived from the recipe and reuse for the next rows. It is not part of the recipe."""
        return {}

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "prepared"}

    @property
    def version(self) -> int:
        if self.table is None:
            return 1
        if self.table.nulls or self.table.unnamed:
            return 4
        return 3 if any(column.weighed for column in self.table.columns) else 2

    def in_words(self) -> str:
        """A phrase that describes the features."""
        if self.table is not None:
            how = "by a dictionary" if self.hash_bits is None else f"hashed into 2^{self.hash_bits}"
            return f"features of {len(self.table.columns)} columns, {how}"
        if self.form == "vw":
            how = "by a dictionary" if self.hash_bits is None else f"hashed into 2^{self.hash_bits}"
            return f"features of Vowpal Wabbit's text, {how}"
        if self.form == "hashed":
            return f"names of features hashed into 2^{self.hash_bits}"
        return "numbered features" if self.names is None else "named features"

    def words_of(self, column: TableColumn) -> list[int]:
        """The features (0-based, increasing) of the words of a text, in a recipe that has names."""
        assert self.table is not None
        begin = "" if column.bare else f"{self.table.key(column.name)}="
        return [feature for feature, name in enumerate(self.names or ()) if name.startswith(begin)]

    def to_json(self) -> bytes:
        """Canonical JSON: sorted keys, no spaces, ASCII, and a line feed."""
        record = {"version": self.version, **asdict(replace(self, names=None))}
        for typed in filter(None, (record["labels"], record["table"], *(record["table"] or {}).get("columns", ()))):
            if typed.get("type", "") is None:  # of labels that are not of a table
                del typed["type"]
            for name in [name for name, usual in _USUAL.items() if typed.get(name) == usual]:
                del typed[name]
        text = json.dumps({**record, "names": self.names}, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return f"{text}\n".encode()

    @classmethod
    def from_json(cls, content: bytes) -> Self:
        """The recipe that `to_json` wrote. Raises ValueError for anything else, NewerRecipe for one of a later version."""
        try:
            record = json.loads(content)
            if not isinstance(record, dict):
                raise ValueError("a recipe is an object")
            version = record.pop("version", None)
            if version not in VERSIONS:
                raise NewerRecipeError(f"recipe version {version}: upgrade streamcut")
            record["labels"] = _label_rule(dict(record["labels"]))
            if record.get("names") is not None:
                record["names"] = _texts(record["names"])
            if record.get("table") is not None:
                record["table"] = Table.from_record(record["table"])
            recipe = cls(**record)
            if recipe.version != version:
                raise ValueError(f"a recipe of version {version} whose columns are those of version {recipe.version}")
            return recipe
        except (TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError(f"not well-formed: {error}") from None


class NewerRecipeError(ValueError):
    """Written by a later streamcut."""


def _label_rule(record: dict[str, Any]) -> LabelRule:
    words = tuple((str(word), float(number)) for word, number in record.pop("words", ()))
    comparison = record.pop("comparison", None)
    if comparison is not None:
        comparison = Comparison(**comparison)
    return LabelRule(words=words, comparison=comparison, **record)


def _texts(texts: object) -> tuple[str, ...]:
    if not isinstance(texts, list) or not all(isinstance(item, str) for item in texts):
        raise ValueError("names are a list of texts")
    return tuple(texts)


# --- comparison ---------------------------------------------------------------------------------------------------------------

PLAIN = Recipe()  # of data with no stated recipe


def require_same(there: Recipe | None, here: Recipe | None, what: str, than: str = "the model's training data") -> None:
    """Raise BadInputError, naming the difference, unless `what`, with recipe `here`, has the features of `than`."""
    mismatch = difference(there or PLAIN, here or PLAIN)
    if mismatch is not None:
        raise BadInputError(f"{what}: prepared by another recipe than {than}: {mismatch}")


def difference(there: Recipe, here: Recipe) -> str | None:
    """The difference between the features, None when there is none. Names are compared if both have them."""
    if (there.form, there.hash_bits) != (here.form, here.hash_bits):
        return f"{there.in_words()} there, {here.in_words()} here"
    if there.table is not None and here.table is not None:
        mismatch = _tables(there.table, here.table)
        if mismatch is None and there.hash_bits is None and there.names != here.names and not _goes_on(there.names, here.names):
            mismatch = (
                "the categories were numbered anew; prepare these data with the recipe of the others (--recipe MODEL or STORE)"
            )
        return mismatch
    if there.layer != here.layer:
        return "{} there, {} here".format(*("X" if one.layer is None else f"layer {one.layer!r}" for one in (there, here)))
    if there.names is not None and here.names is not None:
        for number, (theirs, ours) in enumerate(zip(there.names, here.names, strict=False)):
            if theirs != ours:
                return f"feature {number} (0-based) is {theirs!r} there and {ours!r} here"
    return None


def _meaning(column: TableColumn) -> TableColumn:
    """`column` without what does not affect features: numbers are spelled alike, whole or not, and roles imply types."""
    numbers = column.type in (INTEGER, NUMBER)
    return replace(column, type=(NUMBER if numbers else column.type) if column.role == CATEGORICAL else None)


def _goes_on(there: tuple[str, ...] | None, here: tuple[str, ...] | None) -> bool:
    """Whether the names of `here` are the first names of `there`."""
    return there is not None and here is not None and there[: len(here)] == here


def _tables(there: Table, here: Table) -> str | None:
    """The difference between the columns. Columns of groups and weights do not affect features."""
    theirs, ours = ({column.name: column for column in table.columns} for table in (there, here))
    if missing := [name for name in theirs if name not in ours]:
        return f"column {missing[0]!r} is used there and not here"
    if more := [name for name in ours if name not in theirs]:
        return f"column {more[0]!r} is used here and not there"
    for name, column in theirs.items():
        if _meaning(ours[name]) != _meaning(column):
            said, other = column.in_words(), ours[name].in_words()
            if column.type != ours[name].type and column.role == CATEGORICAL:
                said, other = f"{said}, {column.type}", f"{other}, {ours[name].type}"
            return (
                f"column {name!r} is {said} there, {other if other != said else 'the same with other edges, parts or means'} here"
            )
    if sorted(there.crosses) != sorted(here.crosses):
        crosses = (", ".join("*".join(cross) for cross in table.crosses) or "none" for table in (there, here))
        return "the crosses are {} there and {} here".format(*crosses)
    spelt, spelt_here = (", ".join((table.missing, *table.nulls)) for table in (there, here))
    return None if spelt == spelt_here else f"missing values are {spelt!r} there and {spelt_here!r} here"
