"""Write a model in the form of another program."""

from __future__ import annotations

import os
from dataclasses import replace as replaced
from importlib import import_module

from streamcut.errors import UsageError
from streamcut.exports.targets import TARGETS, Target, that_hold
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
) -> None:
    """See streamcut.api."""
    by_ending = (name for name, target in TARGETS.items() if os.fspath(path).endswith(target.endings))
    to = next(by_ending, "liblinear") if to is None else to
    if to not in TARGETS:
        raise UsageError(f"to: {unknown(to, TARGETS)}")
    target, model = TARGETS[to], as_model(model)
    if without_recipe and model.recipe is not None:
        words = replaced(type(model.recipe)(), labels=replaced(model.recipe.labels, column=None))
        model = replaced(model, recipe=words if target.words else None)
    link = None if without_probabilities else model.link or model.own_link
    _expect_held(model, link, to, target)
    content = import_module(f"streamcut.exports.{target.module}").content(model, link)
    with output(path, prefix="model", size=len(content), replace=replace) as file:
        file.write(content)


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
    if link is not None and not (type(link).__name__ in target.links and (target.fitted or model.link is None)):
        raise UsageError(
            f"{to} cannot hold the probabilities of this model{' that were fitted' if model.link is not None else ''}; export it "
            f"to {that_hold('fitted')}, or without them: --without-probabilities"
        )
