"""Reading recipes from stores, models and JSON files."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np

from streamcut.errors import BadInputError, NotFoundError
from streamcut.foundation.opened import read_file, readable
from streamcut.io.opening import open_dataset
from streamcut.io.places.remote import is_url, read_object, size_of
from streamcut.io.recipe.recipe import NewerRecipeError, Recipe
from streamcut.io.stores.files import is_store

_MEMBER = "recipe"  # of a model file


def recipe_from(given: Any) -> Recipe | None:
    """`given` if it is a Recipe (or None), else the recipe in the model, store or JSON file of that path.

    Raises NotFoundError if there is none, BadInputError for a damaged one.
    """
    if given is None or isinstance(given, Recipe):
        return given
    path = os.fspath(given)
    if (size_of(path) is None or is_store(path)) if is_url(path) else os.path.isdir(path):
        found = open_dataset(path).recipe
        if found is None:
            raise NotFoundError(f"{path}: the store has no recipe: it is not recorded how its features were made")
        return found
    with readable(path, NotFoundError, "no recipe can be read there"):
        content = read_object(path) if is_url(path) else read_file(path)
        if content.startswith(b"PK\x03\x04"):
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                if _MEMBER not in archive:
                    raise ValueError("a model without a recipe, or no model")
                content = archive[_MEMBER].tobytes()
    with readable(path, BadInputError, "not a recipe"):
        try:
            return Recipe.from_json(content)
        except NewerRecipeError as error:
            raise NotFoundError(f"{path}: {error}") from None
