"""Whether rows made by one recipe can be scored by a model of another, and what to do if not."""

from __future__ import annotations

from dataclasses import replace

from streamcut.errors import BadInputError
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.recipe.table import CATEGORICAL, INTEGER, NUMBER, Column, Table

PLAIN = Recipe()  # of data with no stated recipe


def require_same(there: Recipe | None, here: Recipe | None, what: str, than: str = "the model's training data") -> None:
    """Raise BadInputError, naming the difference, unless `what`, with recipe `here`, has the features of `than`."""
    found = difference(there or PLAIN, here or PLAIN)
    if found is not None:
        raise BadInputError(f"{what}: prepared by another recipe than {than}: {found}")


def difference(there: Recipe, here: Recipe) -> str | None:
    """The difference between the features, None when there is none. Names are compared if both have them."""
    if (there.form, there.hash_bits) != (here.form, here.hash_bits):
        return f"{there.in_words()} there, {here.in_words()} here"
    if there.table is not None and here.table is not None:
        found = _tables(there.table, here.table)
        if found is None and there.hash_bits is None and there.names != here.names and not _goes_on(there.names, here.names):
            found = (
                "the categories were numbered anew; prepare these data with the recipe of the others (--recipe MODEL or STORE)"
            )
        return found
    if there.layer != here.layer:
        return "{} there, {} here".format(*("X" if one.layer is None else f"layer {one.layer!r}" for one in (there, here)))
    if there.names is not None and here.names is not None:
        for number, (theirs, ours) in enumerate(zip(there.names, here.names, strict=False)):
            if theirs != ours:
                return f"feature {number} (0-based) is {theirs!r} there and {ours!r} here"
    return None


def _meaning(column: Column) -> Column:
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
