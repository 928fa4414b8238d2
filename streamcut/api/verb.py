"""What a verb is: a function of the library, without what does its work."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

from streamcut.options.option import documented

_Verb = TypeVar("_Verb", bound=Callable)
VERBS: dict[str, Callable] = {}


def verb(home: str, options: Any = None) -> Callable[[_Verb], _Verb]:
    """A decorator: the function is that of the same name in the module `home`; `options` is the record of its **options."""

    def declared(function: Any) -> Any:
        if options is not None:
            function = documented(options)(function)

        @wraps(function)
        def run(*arguments: Any, **named: Any) -> Any:
            return getattr(import_module(home), function.__name__)(*arguments, **named)

        run.home, run.options = home, options  # type: ignore[attr-defined]
        VERBS[function.__name__] = run
        return run

    return declared
