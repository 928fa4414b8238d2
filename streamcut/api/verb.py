"""What a verb is: a function of the library, without what does its work."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

from streamcut.options.option import documented

_Verb = TypeVar("_Verb", bound=Callable)
VERBS: dict[str, Callable] = {}


def verb(home: str, options: Any = None) -> Callable[[_Verb], _Verb]:
    """A decorator: the function is that of the same name in the module `home`, which gets all arguments, with the defaults that
    are said here; ... stands for its own default. `options` is the record of its **options."""

    def declared(function: Any) -> Any:
        if options is not None:
            function = documented(options)(function)

        signature = inspect.signature(function)

        @wraps(function)
        def run(*arguments: Any, **named: Any) -> Any:
            asked = signature.bind(*arguments, **named)
            asked.apply_defaults()
            named = {name: value for name, value in asked.kwargs.items() if value is not ...}
            return getattr(import_module(home), function.__name__)(*asked.args, **named)

        run.home, run.options = home, options  # type: ignore[attr-defined]
        VERBS[function.__name__] = run
        return run

    return declared
