"""Whether rows that one recipe made can be scored by a model of another, and what to do when they cannot."""

from __future__ import annotations

from streamcut.errors import BadInputError
from streamcut.io.recipe.recipe import Recipe

PLAIN = Recipe()  # of data that nobody has said anything about


def require_same(there: Recipe | None, here: Recipe | None, what: str, than: str = "the model's training data") -> None:
    """Raise BadInputError, naming the difference, unless `what`, whose recipe is `here`, has the features of `than`."""
    found = difference(there or PLAIN, here or PLAIN)
    if found is not None:
        raise BadInputError(f"{what}: prepared by another recipe than {than}: {found}")


def difference(there: Recipe, here: Recipe) -> str | None:
    """What in the features differs, None when they are the same. Names are compared where both have them."""
    if (there.form, there.hash_bits) != (here.form, here.hash_bits):
        return f"{there.in_words()} there, {here.in_words()} here"
    if there.names is not None and here.names is not None:
        for number, (theirs, ours) in enumerate(zip(there.names, here.names, strict=False)):
            if theirs != ours:
                return f"feature {number} (0-based) is {theirs!r} there and {ours!r} here"
    return None
