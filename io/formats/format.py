"""What a format of input is: how it is recognised, opened for a conversion, and read for a model."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from streamcut.errors import BadInputError, UsageError
from streamcut.io.recipe.table import MISSING_LABELS, UNFIT
from streamcut.options.option import option

if TYPE_CHECKING:
    from streamcut.foundation.chunk import Chunk
    from streamcut.io.conversion.options import ConvertOptions
    from streamcut.io.conversion.plan import ConvertPlan
    from streamcut.io.recipe.recipe import Recipe
    from streamcut.io.sources.row_source import RowSource


def loaded(home: str) -> Any:
    """The class at `home`, "module.Name" in streamcut.io, imported now."""
    module, _, name = home.rpartition(".")
    return getattr(import_module(f"streamcut.io.{module}"), name)


@dataclass(frozen=True, slots=True)
class Opened:
    """The inputs of a conversion, before there is a plan of its memory.

    memory      (bytes of a block of text, threads) -> bytes that reading takes, except rows longer than a block
    source      the rows, read within a plan
    n_features  None: only reading tells
    told        a sentence for each guess that the user should know
    """

    memory: Callable[[int, int], int]
    source: Callable[[ConvertPlan], RowSource]
    n_features: int | None = None
    told: Sequence[str] = ()


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

    def count(self, counters: Mapping[str, int], where: str) -> None:
        """Add the counters of input so far. With `strict`, raises BadInputError for what does not fit."""
        self.counters = +Counter(counters)
        for what, count in self.unseen.items() if self.strict else ():
            raise BadInputError(f"{where}: {what}: {count:,}; without --strict (strict=False) such rows are scored all the same")

    def expect_no_columns(self, what: str) -> None:
        """Raise UsageError if columns are requested from input that has none."""
        if self.keep:
            raise UsageError(f"keep: {', '.join(self.keep)}: {what}")

    def watched(self, source: RowSource, paths: Iterable[str], where: str) -> Iterator[Chunk]:
        """The rows of `source`, whose files must not change meanwhile; what is unusual in them is counted."""
        from streamcut.io.unchanged import FileStates

        for chunk, _ in FileStates(paths).watch(source.blocks()):
            self.count(source.counters, where)
            yield chunk
        self.count(source.counters, where)


@dataclass(frozen=True)
class Format:
    """One format of input; a family of formats is a subclass.

    name      in --format
    help      its text in `streamcut convert --help`; formats with the same help are listed together; "": never given by name
    suffixes  of names that claim it, before that of a compression
    heads     magic bytes; for a format that has some, the content decides, and a contradicting name is refused
    members   names in an HDF5 or Zarr group with such rows, */name inside any of its groups
    options   of `convert` that apply to it, in addition to those of every format
    labels    where its labels are: in the rows, in a separate "file", in a "column" that must be named
    remote    it may be behind a URL
    """

    name: str
    help: str = ""
    suffixes: tuple[str, ...] = ()
    heads: tuple[bytes, ...] = ()
    members: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    labels: Literal["rows", "file", "column"] = "rows"
    remote: bool = False

    scored: ClassVar[bool] = True  # whether `rows` reads it; otherwise it needs a store first

    def open(self, paths: Sequence[Any], options: ConvertOptions, scratch: str) -> Opened:
        """The files, or the frame, of a conversion. Raises UsageError for options that exclude each other."""
        raise NotImplementedError

    def rows(self, data: Any, recipe: Recipe, raw: Raw) -> Iterator[Chunk]:
        """The rows of a path or a frame for a model of this recipe. Raises BadInputError and UsageError."""
        raise NotImplementedError
