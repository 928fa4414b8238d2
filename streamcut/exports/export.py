"""Write a model in the form of another program."""

from __future__ import annotations

import dataclasses
import os
from importlib import import_module

import numpy as np

from streamcut.errors import UsageError
from streamcut.execution.ceiling import Ceiling
from streamcut.exports.targets import TARGETS, Target, target_of, that_hold
from streamcut.foundation.shown import unknown
from streamcut.io.places.outputs import output
from streamcut.models.files import as_model
from streamcut.models.link import OwnLink
from streamcut.models.model import Model


def export(
    model: Model | str | os.PathLike,
    path: str | os.PathLike,
    *,
    to: str | None = None,
    replace: bool = True,
    without_recipe: bool = False,
    without_probabilities: bool = False,
    memory: str = "auto",
) -> None:
    """See streamcut.api."""
    to = target_of(os.fspath(path)) if to is None else to
    if to not in TARGETS:
        raise UsageError(f"to: {unknown(to, TARGETS)}")
    target, ceiling = TARGETS[to], Ceiling(memory)
    model = as_model(model, ceiling.expect_model)
    if without_recipe:
        model = _plain(model, target)
    link = None if without_probabilities else model.link or model.own_link
    _expect_held(model, link, to, target)
    count, each = _written(model, target), target.bytes_a_weight
    ceiling.expect([("libraries", target.libraries), (f"{each} bytes × {count:,} weights", each * count)])
    content = getattr(import_module(f"streamcut.exports.{target.module}"), target.function)(model, link)
    with output(path, prefix="model", size=len(content), replace=replace) as file:
        file.write(content)
    ceiling.keep()


def _written(model: Model, target: Target) -> int:
    """The number of weights to write."""
    weights = getattr(model, "weights", np.empty(0))
    if not target.sparse:
        return weights.size
    return int(np.count_nonzero(weights if weights.ndim == 1 else weights.any(axis=1))) * model.scores_per_row


def _plain(model: Model, target: Target) -> Model:
    """`model` without its recipe; its words for labels are kept if `target` has words."""
    if model.recipe is None:
        return model
    kept = (
        dataclasses.replace(type(model.recipe)(), labels=dataclasses.replace(model.recipe.labels, column=None))
        if target.words
        else None
    )
    return dataclasses.replace(model, recipe=kept)


def _expect_held(model: Model, link: OwnLink | None, to: str, target: Target) -> None:
    """Raise UsageError for a recipe or probabilities that `target` cannot hold."""
    recipe = model.recipe
    if recipe is not None and not target.recipe and recipe.form != "numbers":
        raise UsageError(
            f"{to} cannot say how rows become features, and this model takes {recipe.in_words()}; export it to "
            f"{that_hold('recipe')}, or the weights of the features alone: --without-recipe"
        )
    if model.label_names and not target.words:
        raise UsageError(
            f"{to} has numbers for labels, and this model has words ({', '.join(list(model.label_names.values())[:3])}); "
            f"export it to {that_hold('words')}, or with the numbers that stand for them: --without-recipe"
        )
    if link is None or (type(link).__name__ in target.probabilities and (target.fitted or model.link is None)):
        return
    raise UsageError(
        f"{to} cannot hold the probabilities of this model{' that were fitted' if model.link is not None else ''}; export it to "
        f"{that_hold('fitted')}, or without them: --without-probabilities"
    )
