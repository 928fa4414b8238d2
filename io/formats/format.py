"""The record of an input format, and the arguments of its functions."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from streamcut.errors import BadInputError, UsageError
from streamcut.io.recipe.table import MISSING_LABELS, UNFIT
from streamcut.options.option import option

if TYPE_CHECKING:
    from streamcut.foundation.chunk import Chunk
    from streamcut.io.conversion.options import ConvertOptions
    from streamcut.io.conversion.plan import ConvertPlan
    from streamcut.io.recipe.recipe import Recipe
    from streamcut.io.sources.row_source import RowSource


def at(home: str) -> Callable[..., Any]:
    """The function at `home`, "module.name" in streamcut.io, imported when it is first called."""
    module, _, name = home.rpartition(".")
    return lambda *given, **named: getattr(import_module(f"streamcut.io.{module}"), name)(*given, **named)


@dataclass(frozen=True, slots=True)
class Conversion:
    """The inputs to read: `readers` from the format, within the memory of `plan`."""

    paths: list[str]
    readers: Sequence[Any]
    options: ConvertOptions
    plan: ConvertPlan


@dataclass
class Raw:
    """How raw input is read, and what was noticed on the way.

    index_base      None: as in the recipe, else 1
    labelled        labels are read; otherwise they are ignored and may be missing
    named           also read the names of the rows, if any: barcodes of cells
    keep            columns of a table to return with the rows, in `kept`: batches of Arrow, in row order
    counters        {what was unusual: how often}, such as values of a column that training did not see
    """

    index_base: int | None = option(
        None,
        "Number of the first feature in svmlight text.  [default: what it was in the training data, else 1]",
        choices=(None, 0, 1),
    )
    labelled: bool = True
    named: bool = False
    missing_labels: str = option("error", "Tables: rows without a label are an error, or left out.", choices=MISSING_LABELS)
    format: str = option("auto", "Format of DATA, if it is no store; auto: found from its name and content.", flag="format")
    keep: tuple[str, ...] = option((), "Tables, cells: columns of DATA to write beside the answers.", metavar="A,B", kind="names")
    strict: bool = option(False, "Refuse rows with values that do not fit the model's recipe, instead of counting them.")
    counters: Counter[str] = field(default_factory=Counter)
    kept: deque[Any] = field(default_factory=deque)

    @property
    def unseen(self) -> dict[str, int]:
        """The counters of rows that did not fit the model's recipe."""
        return {what: count for what, count in self.counters.items() if what.startswith(UNFIT)}

    def count(self, counters: Counter[str], where: str) -> None:
        """Add the counters of input so far. With `strict`, raises BadInputError for what does not fit."""
        self.counters = counters
        for what, count in self.unseen.items() if self.strict else ():
            raise BadInputError(f"{where}: {what}: {count:,}; without --strict (strict=False) such rows are scored all the same")

    def expect_no_columns(self, what: str) -> None:
        """Raise UsageError if columns are requested from input that has none."""
        if self.keep:
            raise UsageError(f"keep: {', '.join(self.keep)}: {what}")


@dataclass(frozen=True, slots=True)
class Format:
    """One format of input.

    name      in --format; `asked` False: it is never given by name
    help      its text in `streamcut convert --help`; formats with the same help are listed together
    suffixes  of names that claim it, before that of a compression
    heads     magic bytes; for a format that has some, the content decides and a contradicting name is refused,
              unless `named`: then the name is enough
    members   names in an HDF5 or Zarr group with such rows, */name inside any of its groups
    options   of `convert` that apply to it, in addition to those of every format
    labels    where its labels are: in the rows, in a separate "file", in a "column" that must be named
    remote    it may be behind a URL
    learns    features are numbered in order of appearance, unless they are hashed
    variant   (paths, options) -> name of the format that reads these files
    readers   (paths, options, scratch folder) -> readers of the files; [] for streaming formats, whose bytes behind a URL are
              fetched ahead. Raises UsageError for options that exclude each other
    memory    (readers, bytes of a block of text, threads) -> bytes that reading takes, except rows longer than a block
    source    the rows of a conversion
    score     (path, recipe, how it is read) -> rows for a model of this recipe; None: needs a store first
    table     (path or frame, its Spelling) -> its streamcut.io.tables.files.TableFile; for tables only
    """

    name: str
    readers: Callable[[Sequence[Any], ConvertOptions, str], Sequence[Any]]
    memory: Callable[[Sequence[Any], int, int], int]
    source: Callable[[Conversion], RowSource]
    score: Callable[[Any, Recipe, Raw], Iterator[Chunk]] | None = None
    help: str = ""
    asked: bool = True
    suffixes: tuple[str, ...] = ()
    heads: tuple[bytes, ...] = ()
    named: bool = False
    members: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    labels: Literal["rows", "file", "column"] = "rows"
    remote: bool = False
    learns: bool = False
    variant: Callable[[Sequence[str], ConvertOptions], str] | None = None
    table: Callable[..., Any] | None = None
