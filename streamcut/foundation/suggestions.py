"""Suggestions for an unknown name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from streamcut.errors import UsageError


def meant(name: object, known: Iterable[str]) -> str:
    """ "did you mean ‹name›?" with the closest known names, "" if none is close. Case and _ or - don't matter."""
    names = {plain(each): each for each in known}
    close = [names[each] for each in get_close_matches(plain(str(name)), names, n=2, cutoff=0.65)]
    return f"did you mean {' or '.join(close)}?" if close else ""


def unknown(value: object, known: Iterable[str]) -> str:
    """The end of a message on a value not in `known`: a suggestion, and the known values."""
    choices = list(known)
    close = meant(value, choices)
    return f"{value!r} is unknown; {close + ' ' if close else ''}use one of {', '.join(choices)}"


def expect_known(function: str, options: Iterable[str], known: Iterable[str]) -> None:
    """Raise UsageError if `function` lacks an option with one of these names."""
    there = list(known)
    for name in options:
        if name not in there:
            raise UsageError(f"{function} has no option {name}; {meant(name, there) or f'help(streamcut.{function}) lists them'}")


def plain(name: str) -> str:
    """`name` in the form used for comparison."""
    return name.lower().replace("_", "-")
