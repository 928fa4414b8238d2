"""Recipes where they are kept: in stores, in models, in files of JSON."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from streamcut.errors import BadInputError, NotFoundError
from streamcut.io.opening import open_dataset
from streamcut.io.recipe.recipe import NewerRecipeError, Recipe
from streamcut.io.stores.spec import MANIFEST
from streamcut.remote import is_url, read_object, size_of

_MEMBER = "recipe.npy"  # of a model file


def recipe_from(given: Any) -> Recipe | None:
    """`given` if it is a Recipe (or None), else the one in the model, store or JSON file of that path.

    Raises NotFoundError where there is none, BadInputError for one that is damaged.
    """
    if given is None or isinstance(given, Recipe):
        return given
    path = os.fspath(given)
    if _is_store(path):
        found = open_dataset(path).recipe
        if found is None:
            raise NotFoundError(f"{path}: the store has no recipe: nobody said how its features were made")
        return found
    try:
        content = _content(path)
    except NotFoundError:
        raise
    except (OSError, zipfile.BadZipFile, ValueError) as error:
        raise NotFoundError(f"{path}: no recipe can be read there ({error})") from None
    try:
        return Recipe.from_json(content)
    except NewerRecipeError as error:
        raise NotFoundError(f"{path}: {error}") from None
    except (TypeError, ValueError, KeyError) as error:
        raise BadInputError(f"{path}: not a recipe ({error})") from None


def _is_store(path: str) -> bool:
    if is_url(path):
        return size_of(path) is None or size_of(f"{path.rstrip('/')}/{MANIFEST}") is not None
    return os.path.isdir(path)


def _content(path: str) -> bytes:
    whole = read_object(path) if is_url(path) else Path(path).read_bytes()
    if not zipfile.is_zipfile(io.BytesIO(whole)):
        return whole
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        if _MEMBER not in archive.namelist():
            raise ValueError("a model without a recipe, or no model")
        with archive.open(_MEMBER) as member:
            return np.lib.format.read_array(member, allow_pickle=False).tobytes()
