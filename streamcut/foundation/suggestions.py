"""What was probably meant by a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from streamcut.errors import UsageError


def meant(name: object, known: Iterable[str]) -> str:
    """ "did you mean ‹name›?" with the known names that are closest, "" when none is close. Case and _ or - don't matter."""
    names = {plain(each): each for each in known}
    close = [names[each] for each in get_close_matches(plain(str(name)), names, n=2, cutoff=0.65)]
    return f"did you mean {' or '.join(close)}?" if close else ""


def unknown(value: object, known: Iterable[str]) -> str:
    """The end of a message on a value that is none of those `known`: what was meant, and what there is."""
    choices = list(known)
    close = meant(value, choices)
    return f"{value!r} is unknown; {close + ' ' if close else ''}use one of {', '.join(choices)}"


def expect_known(function: str, options: Iterable[str], known: Iterable[str]) -> None:
    """Raise UsageError when `function` has no option of one of these names."""
    there = list(known)
    for name in options:
        if name not in there:
            raise UsageError(f"{function} has no option {name}; {meant(name, there) or f'help(streamcut.{function}) lists them'}")


def plain(name: str) -> str:
    """`name` as it is compared."""
    return name.lower().replace("_", "-")
