"""Options of `convert` that say what the columns of a table are, and the recipe as people read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from streamcut.cli.parameters import Choice

if TYPE_CHECKING:
    from streamcut.io.recipe.recipe import Recipe

_LISTS = ("categorical", "numeric", "text", "cross", "drop", "id")
_OPTIONS = [
    click.option("--categorical", multiple=True, metavar="A,B", help="Tables: columns whose values are categories."),
    click.option("--numeric", multiple=True, metavar="A,B:bin16", help="Columns of numbers; :bin16: categories by quantiles."),
    click.option("--text", multiple=True, metavar="A,B", help="Columns of texts: counts of their words."),
    click.option("--ngrams", metavar="1,2|chars:3,5", help="Texts: sequences of this many words, or characters.  [default: 1,1]"),
    click.option(
        "--time", multiple=True, metavar="A:hour,weekday", help="Categories of the parts of a time; one such option a column."
    ),
    click.option("--cross", multiple=True, metavar="A*B", help="Pairs of categories as categories."),
    click.option("--drop", multiple=True, metavar="A,B", help="Columns to leave out; '*': all that are named nowhere."),
    click.option("--id", multiple=True, metavar="A", help="Columns that name a row: no features."),
    click.option(
        "--missing",
        type=Choice(["own", "zero", "error"]),
        default="own",
        show_default=True,
        help="A missing value has a feature of its own, has none, or is an error.",
    ),
    click.option(
        "--labels-as",
        type=Choice(["auto", "numbers", "words"]),
        default="auto",
        show_default=True,
        help="Labels of tables; auto refuses words among numbers, and 1/0 in one file with 1/-1 in the next.",
    ),
    click.option(
        "--missing-labels",
        type=Choice(["error", "skip"]),
        default="error",
        show_default=True,
        help="Rows without a label: stop, or leave them out.",
    ),
    click.option(
        "--max-categories",
        type=int,
        default=250_000,
        metavar="N",
        show_default=True,
        help="Most categories and words without --hash-bits.",
    ),
    click.option("--recipe", metavar="PATH", help="Make features as those of a model, a store or a recipe.json were made."),
]


def table_options(command: Callable) -> Callable:
    """All of them, on a click command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def joined(options: dict[str, Any]) -> dict[str, Any]:
    """`options` with lists of names as texts with commas."""
    return {name: ",".join(value) or () if name in _LISTS else value for name, value in options.items()}


def recipe_lines(recipe: Recipe) -> Iterator[str]:
    """What the columns of a table are, a line each."""
    table, labels = recipe.table, recipe.labels
    if table is None:
        return
    width = max(len(column.name) for column in table.columns)
    for column in table.columns:
        kind = f" ({column.type})" if column.type and column.role == "categorical" else ""
        yield f"  {column.name:<{width}}  {column.in_words()}{kind}"
    for cross in table.crosses:
        yield f"  {'*'.join(cross)}  cross"
    if labels.none:
        yield "  no labels"
    else:
        words = ", ".join(labels.names.values())
        yield f"  labels: {labels.comparison or labels.column}" + (f" ({words})" if words and not labels.comparison else "")
    how = "a dictionary" if recipe.hash_bits is None else f"hashing into 2^{recipe.hash_bits}"
    missing = {"own": "have features of their own", "zero": "have no feature", "error": "are errors"}[table.missing]
    yield f"  features by {how}; missing values {missing}"
