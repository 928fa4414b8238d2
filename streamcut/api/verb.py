"""What a verb is: a function of the library, without what does its work."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from streamcut.options.option import documented

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Verb = TypeVar("_Verb", bound=Callable)


class Verb(Protocol):
    """A function of the library with what `verb` declares of it."""

    __name__: str
    home: str
    options: object
    command: str

    def __call__(self, *arguments: Any, **named: Any) -> Any: ...


VERBS: dict[str, Verb] = {}


def verb(home: str, options: type[DataclassInstance] | None = None, command: str = "") -> Callable[[_Verb], _Verb]:
    """A decorator: the function is that of the same name in the module `home`, which gets all arguments, with the defaults that
    are said here; ... stands for its own default. `options` is the record of its **options; `command` says what the command of
    that name does, "": there is none."""

    def declared(function: Any) -> Any:
        if options is not None:
            function = documented(options)(function)

        signature = inspect.signature(function)
        kinds = {name: parameter.kind for name, parameter in signature.parameters.items()}
        ordered = [name for name, kind in kinds.items() if kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
        names = None if inspect.Parameter.VAR_KEYWORD in kinds.values() else kinds.keys()
        usual = {name: parameter.default for name, parameter in signature.parameters.items()}
        usual = {name: value for name, value in usual.items() if value not in (..., inspect.Parameter.empty)}

        @wraps(function)
        def run(*arguments: object, **named: object) -> object:
            taken = ordered[: len(arguments)]
            if len(arguments) > len(ordered) or (names and not names >= named.keys()) or not named.keys().isdisjoint(taken):
                signature.bind(*arguments, **named)  # raises TypeError; for each row that is predicted it would take too long
            asked = {**usual, **named}
            for name in taken:
                asked.pop(name, None)
            return getattr(import_module(home), function.__name__)(*arguments, **asked)

        made = cast(Verb, run)
        made.home, made.options, made.command = home, options, command
        VERBS[function.__name__] = made
        return made

    return declared
