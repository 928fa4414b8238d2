"""Records that are wrong on purpose: a JSON document with one thing in it replaced, removed or added."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

ODD: tuple[Any, ...] = (None, True, -1, 0, 1.5, -0.5, 1e308, 2**31, 2**62, 2**80, 10**400)
ODD += ("", "x", "\x1b[31m\n", [], [[]], {}, {"a": 1})


def places(document: Any, path: tuple = ()) -> Iterator[tuple]:
    """The path of every value inside of `document`; of long lists, the first and the last item."""
    if isinstance(document, dict):
        for name in document:
            yield (*path, name)
            yield from places(document[name], (*path, name))
    elif isinstance(document, list) and document:
        for k in {0, len(document) - 1}:
            yield (*path, k)
            yield from places(document[k], (*path, k))


def mutated(document: Any) -> Iterator[tuple[str, Any]]:
    """(what was done, the whole document with it)."""
    for path in places(document):
        for odd in ODD:
            changed = copy.deepcopy(document)
            holder = _at(changed, path[:-1])
            if type(holder[path[-1]]) is type(odd) and holder[path[-1]] == odd:
                continue
            holder[path[-1]] = odd
            yield f"{'/'.join(map(str, path))} = {str(odd)[:20]!r}", changed
        changed = copy.deepcopy(document)
        del _at(changed, path[:-1])[path[-1]]
        yield f"without {'/'.join(map(str, path))}", changed


def _at(document: Any, path: tuple) -> Any:
    for step in path:
        document = document[step]
    return document
