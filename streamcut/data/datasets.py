"""Data sets from any input: stores, arrays in memory, and raw data that has to be converted first."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

from streamcut.data.inputs import arrays_of, opened, require_same_numbers, with_labels
from streamcut.errors import UsageError
from streamcut.foundation.files import scratch_folder
from streamcut.foundation.redaction import path_of, redacted
from streamcut.io.dataset import Dataset, View, is_dataset
from streamcut.io.formats.finding import claim, is_raw
from streamcut.io.memory import MemoryDataset
from streamcut.io.recipe.recipe import Recipe, require_same
from streamcut.io.sources.lazy import framed, is_frame, is_lazy
from streamcut.models.model import Model

# Options of `convert` that decide which rows there are and in which order; the recipe holds those that make features of them.
_ROWS = (
    "format", "index_column", "value_column", "index_base", "n_features", "wide_index", "max_line_bytes", "keep_zeros",
    "missing_labels", "on_error", "max_errors", "shuffle", "group_by_qid",
)  # fmt: skip


@contextmanager
def stored(
    data: object,
    label: str | None,
    convert: Mapping[str, object] | None,
    scratch: str | None,
    memory: int | str | None,
    *,
    place: str | os.PathLike | None = None,
    **how: object,
) -> Iterator[tuple[object, dict[str, object] | None]]:
    """(`data`, None), or (a store made of a raw file or a frame, its origin).

    label, convert   the column with the labels, and more options of `streamcut.convert`; raw data need one of them
    place            where to make the store; None: it is removed at the end
    how              other arguments of `convert`

    Raises UsageError for `label` with data that has its own labels, and what `convert` raises.
    """
    data = framed(data)
    if isinstance(data, tuple) and is_lazy(data[0]):
        from streamcut.io.conversion.create import NewStore

        with TemporaryDirectory(prefix="streamcut-", dir=scratch_folder(scratch)) as folder:
            place = os.path.join(folder, "data.zarr")
            X, y, *weight = data
            with NewStore(place, memory=memory) as out:
                out.append(X, y, weight=weight[0] if weight else None)
            yield place, {}
        return
    if label is None and not convert and not _unstored(data):
        yield data, None
        return
    if isinstance(data, tuple) or is_dataset(data):
        raise UsageError("label: a store and (X, y) have labels of their own; leave label and convert out")
    more = {**({"labels": label} if label else {}), **(convert or {})}
    with _converted(data, scratch, memory, {**more, **how}, place) as made:
        yield made, _origin(data, more, opened(made))


def _unstored(data: object) -> bool:
    """Whether the rows of `data` are those of a frame, or of a file that is no store."""
    return is_frame(data) or (isinstance(data, str | os.PathLike) and is_raw(os.fspath(data)))


@contextmanager
def _converted(
    data: object,
    scratch: str | None,
    memory: int | str | None,
    options: Mapping[str, Any],
    place: str | os.PathLike | None = None,
) -> Iterator[str]:
    """A store of `data` made by these options of `convert`, which is removed at the end unless it has a `place`."""
    from streamcut.io.conversion.convert import convert as made

    with TemporaryDirectory(prefix="streamcut-", dir=scratch_folder(scratch)) as folder:
        path = os.path.join(folder, "data.zarr") if place is None else os.fspath(place)
        made(data, path, **dict[str, Any]({"memory": memory, "scratch": folder, **options}))
        yield path


def _origin(data: object, convert: Mapping[str, object], store: Dataset) -> dict[str, object]:
    """What a model keeps of raw `data` of which `store` was made, to open its rows again with its recipe: the parameters `data`,
    where it has a path, and `convert`, the options that the recipe does not hold."""
    made = store.manifest.source.get("made_from", {})
    kept = {name: value for name, value in convert.items() if name in _ROWS and value is not None}
    kept |= {name: made[name] for name in ("shard_nnz",) if name in made}  # it follows from the memory
    path = {"data": redacted(os.fspath(data))} if isinstance(data, str | os.PathLike) else {}
    return {**path, "convert": kept}


def with_origin(model: Model, made_of: dict[str, object] | None) -> Model:
    """`model` with the origin of its training data (`stored`) in place of the path of the temporary store that was made of them;
    None: they were not converted."""
    if made_of is None:
        return model
    return replace(model, parameters={name: value for name, value in model.parameters.items() if name != "data"} | made_of)


def _converted_by(model: Model | None, data: object) -> dict[str, object]:
    """The options that raw rows of `data` are converted with for `model`, besides its recipe."""
    parameters = {} if model is None else model.parameters
    how = dict(parameters.get("convert") or {})
    if not isinstance(data, str | os.PathLike) or os.fspath(data) != parameters.get("data"):
        how.pop("format", None)  # of the training data: this may be another container of the same rows
    return how


def origin(model: Model | None, data: object) -> dict[str, object]:
    """The parameters `data` and `convert` of a model that was trained on the rows of `data` as `labelled` opens them."""
    place = path_of(data)
    return ({} if place is None else {"data": place}) | ({"convert": _converted_by(model, data)} if _unstored(data) else {})


@contextmanager
def labelled(model: Model | None, data: object, memory: int | str | None = "auto") -> Iterator[Dataset]:
    """The rows of `data` with the features and labels that `model` takes, as an opened data set: the one door to labelled rows.

    model   None: another program's, whose features are those of `data`
    data    a data set, the path of a store, of text or of a table, a frame, (X, y) or (X, y, row weights). Raw rows become a
            temporary store, by the recipe and the options that those of training were converted with

    Raises BadInputError for a store of another recipe, what `convert` and opening raise.
    """
    recipe, how, data = None if model is None else model.recipe, _converted_by(model, data), framed(data)
    data = with_labels(data, recipe)
    with ExitStack() as held:
        if isinstance(data, tuple) and is_lazy(data[0]):
            data, _ = held.enter_context(stored(data, None, None, None, memory))
        rows = opened(held.enter_context(measurable(data, recipe, None, memory, {**how, "on_told": None})))
        if recipe is not None and not isinstance(rows, MemoryDataset):
            require_same(recipe, rows.recipe, str(rows.path))
        require_same_numbers(recipe, rows.recipe, str(rows.path or "the rows"))
        yield rows


class NamedRows(View):
    """The rows of `inner`, known by the path of `data`, of which they may have been made; without one by none."""

    def __init__(self, inner: Dataset, data: object) -> None:
        super().__init__(inner)
        self.paths = paths = path_of(data)
        self.path = shlex.join(paths) if isinstance(paths, list) else paths
        self.manifest, self.read = inner.manifest, inner.read


@contextmanager
def measurable(
    data: object,
    recipe: Recipe | None,
    scratch: str | None,
    memory: int | str | None,
    convert: Mapping[str, object] | None = None,
) -> Iterator[object]:
    """Evaluation data for models with `recipe`: a store as it is, raw rows as a store made by the recipe, arrays in memory with
    its numbers for words that are labels.

    convert   more arguments of `convert`

    Raises what `convert` raises.
    """
    data = with_labels(framed(data), recipe)
    if isinstance(data, tuple) and not is_lazy(data[0]):
        yield arrays_of(data, recipe)
        return
    if not _unstored(data):
        yield data
        return
    how: dict[str, object] = {} if recipe is None else {"recipe": recipe}
    path = os.fspath(data) if isinstance(data, str | os.PathLike) else None
    if path is not None and (form := claim(path)) is not None and form.labels == "column":  # cells
        how = {} if recipe is None else {"labels": recipe.labels.column, "layer": recipe.layer}
    with _converted(data, scratch, memory, {**how, **(convert or {})}) as place:
        yield place
