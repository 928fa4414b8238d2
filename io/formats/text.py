"""Streaming text formats: svmlight and Vowpal Wabbit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from streamcut.errors import BadInputError, UsageError
from streamcut.io.formats.format import Format, Opened, Raw
from streamcut.io.places.remote import is_url

if TYPE_CHECKING:
    from streamcut.foundation.chunk import Chunk
    from streamcut.io.conversion.options import ConvertOptions
    from streamcut.io.conversion.plan import ConvertPlan
    from streamcut.io.recipe.recipe import Recipe
    from streamcut.io.text.svmlight import SvmlightSource
    from streamcut.io.text.vw import VwSource

# For the shortest possible lines ("1\n"): the text, the arrays that the parser fills, and the rows that leave it.
_TEXT_BYTES = 42
_LINE_BYTES = 16  # per byte of one long line, whose entries take at least four bytes of text


def _ahead(paths: Sequence[str]) -> int:
    """Bytes of objects behind URLs that are fetched ahead."""
    from streamcut.io.text.remote_bytes import AHEAD_BYTES

    return AHEAD_BYTES if any(map(is_url, paths)) else 0


class SvmlightFormat(Format):
    def open(self, paths: Sequence[Any], options: ConvertOptions, scratch: str) -> Opened:
        from streamcut.io.text.options import SvmlightOptions, by_recipe
        from streamcut.io.text.svmlight import LONGEST_LINE, SvmlightSource, blocks_in_flight

        given = {name: getattr(options, name) for name in SvmlightOptions.__dataclass_fields__ if hasattr(options, name)}
        base = 1 if options.index_base is None else options.index_base
        given |= {"index_base": None if base == "auto" else base, "dtype": options.dtype or "float32"}
        given["max_errors"] = 1000 if options.max_errors is None else options.max_errors

        def source(plan: ConvertPlan) -> SvmlightSource:
            return SvmlightSource(
                list(paths),
                SvmlightOptions(**given | ({} if options.recipe is None else by_recipe(options.recipe))),
                threads=plan.threads,
                block_bytes=plan.block_bytes,
                max_line_bytes=options.max_line_bytes or LONGEST_LINE,
                held_line=max(plan.block_bytes, plan.row_bytes // (_LINE_BYTES * blocks_in_flight(plan.threads))),
                recipe=options.recipe,
            )

        return Opened(lambda block, threads: _ahead(paths) + blocks_in_flight(threads) * block * _TEXT_BYTES, source)

    def rows(self, data: Any, recipe: Recipe, raw: Raw) -> Iterator[Chunk]:
        from streamcut.io.text.options import SvmlightOptions, by_recipe
        from streamcut.io.text.svmlight import SvmlightSource
        from streamcut.io.unchanged import FileStates

        raw.expect_no_columns("svmlight text has no columns")
        if recipe.table is not None:
            raise BadInputError(
                f"{data}: svmlight text, but the model takes {recipe.in_words()}; give it a table, or say its --format"
            )
        if recipe.hash_bits is not None and raw.index_base is not None:
            raise UsageError("index_base: the model hashes the features as they are written, so their numbers have no first one")
        given = by_recipe(recipe) if raw.index_base is None else {**by_recipe(recipe), "index_base": raw.index_base}
        if recipe.hash_bits is None:
            given["dtype"] = "float64"  # the numbers as written; hashed sums match training bit for bit
        options = SvmlightOptions(**given, no_labels=not raw.labelled, wide_index=True)
        source = SvmlightSource([data], options, model_takes=recipe.in_words())
        for chunk, _ in FileStates(each.name for each in source.inputs).watch(source.blocks()):
            yield chunk


SVMLIGHT = SvmlightFormat(
    "svmlight",
    help="text, also compressed with gzip, bzip2, xz or zstd",
    options=(
        "feature_names", "recipe", "n_features", "duplicates", "wide_index", "max_line_bytes", "keep_zeros", "index_base",
        "hash_bits", "multilabel", "label_weights", "on_error", "max_errors",
    ),
    remote=True,
)  # fmt: skip


class VwFormat(Format):
    def open(self, paths: Sequence[Any], options: ConvertOptions, scratch: str) -> Opened:
        from streamcut.io.text.vw import BYTES, VwOptions, VwSource

        if options.labels not in (None, "none"):
            raise UsageError(
                "--label: VW text has its labels in the rows; only none, for rows that are to be scored, means something"
            )
        labels = "none" if options.labels == "none" else "skip" if options.missing_labels == "skip" else "read"
        dtype = options.dtype or (None if options.recipe is None else options.recipe.dtype) or "float32"
        how = VwOptions(labels, options.hash_bits, options.max_categories, dtype, options.keep_zeros, options.recipe)

        def source(plan: ConvertPlan) -> VwSource:
            return VwSource(list(paths), how, plan.block_bytes, plan.block_bytes + plan.row_bytes // BYTES, plan.key_bytes)

        return Opened(lambda block, threads: _ahead(paths) + block * BYTES, source)

    def rows(self, data: Any, recipe: Recipe, raw: Raw) -> Iterator[Chunk]:
        from streamcut.io.formats.finding import find_files
        from streamcut.io.text.vw import VwOptions, VwSource

        if recipe.form != "vw":
            raise BadInputError(f"{data}: Vowpal Wabbit's text, but the model takes {recipe.in_words()}")
        raw.expect_no_columns("Vowpal Wabbit's text has no columns")
        labels = "none" if not raw.labelled else "skip" if raw.missing_labels == "skip" else "read"
        source = VwSource(find_files([data], self.name)[1], VwOptions(labels, dtype=recipe.dtype or "float32", recipe=recipe))
        yield from raw.watched(source, [each.name for each in source.inputs], data)


VW = VwFormat(
    "vw",
    help="Vowpal Wabbit's text (.vw, or --format=vw): single labels, importances, namespaces; --hash-bits, or a dictionary",
    suffixes=(".vw",),
    options=("labels", "missing_labels", "max_categories", "recipe", "hash_bits"),
    remote=True,
)
