"""Parameters and attributes of estimators, declared once: the constructor and the docstring are made from the declarations.

An option of `train` is described where it is declared (streamcut.options); a parameter of the same name is described here only
if it differs.

    @declared
    class LinearSVM(ScoringClassifier):
        \"""Linear classifier …\"""

        loss: str = parameter("Which one …", default="hinge")
        coef_: np.ndarray = attribute("ndarray of shape (classes, features)", of=lambda model: model.weights)

makes it a data class, whose signature type checkers see, and adds the numpydoc sections "Parameters" and "Attributes" to
its docstring. The class's own declarations come first, then those of its bases, in the order of inheritance. A subclass
that is not decorated inherits the constructor, or has one of its own. An attribute `of` the model can neither be set nor, if it
is an array, be changed in place: predictions would not notice.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Literal, TypeVar, dataclass_transform

import numpy as np

from streamcut.config import OPTIONS, TrainOptions

USUAL = TrainOptions()  # the defaults
_Class = TypeVar("_Class", bound=type)
_Value = TypeVar("_Value")
_WIDTH = 120
_INDENTED: dict[str, Any] = {"initial_indent": "    ", "subsequent_indent": "    ", "break_on_hyphens": False}


def parameter(
    text: str = "",
    *,
    default: _Value,
    kind: str = "",
    choices: tuple[str, ...] = (),
    option: bool = True,
    kw_only: bool = True,
) -> _Value:
    """A parameter of the constructor, and what it does; "": the text and choices of the `train` option of that name.

    kind     its type in words, or its allowed words (`choices`); neither: its annotation
    option   it is an option of `streamcut.train`; else the estimator handles it
    """
    return field(default=default, kw_only=kw_only, metadata={"text": text, "kind": kind or _words(choices), "option": option})


def attribute(kind: str, text: str = "", *, of: Callable[[Any], Any] | None = None, init: Literal[False] = False) -> Any:
    """An attribute that `fit` sets, or that is `of` the estimator's model: its type in words, and what it is."""
    return field(init=init, metadata={"text": text, "kind": kind, "of": of})


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(parameter, attribute))
def declared(cls: _Class) -> _Class:
    """Give the class a constructor with the parameters that it and its bases declare, and a docstring that describes them."""
    dataclass(eq=False, repr=False, match_args=False)(cls)
    known = {each.name: each for each in fields(cls)}
    for name, each in known.items():
        if (of := each.metadata.get("of")) is not None and name in inspect.get_annotations(cls):
            setattr(cls, name, _of_model(name, of))
    bases = [base for base in cls.__mro__ if "__dataclass_fields__" in vars(base)]
    names = dict.fromkeys(name for base in bases for name in inspect.get_annotations(base) if name in known)
    parameters = sorted((known[name] for name in names if known[name].init), key=lambda each: each.kw_only is True)  # C first
    attributes = [known[name] for name in names if not known[name].init]

    init: Any = vars(cls)["__init__"]
    signature = inspect.signature(init)
    ordered = [signature.parameters[name] for name in ("self", *(each.name for each in parameters))]
    init.__signature__ = signature.replace(parameters=ordered)

    text, examples, calls = inspect.cleandoc(cls.__doc__ or "").partition("\n\nExamples\n")
    sections = _section("Parameters", parameters) + _section("Attributes", attributes)
    cls.__doc__ = textwrap.indent(text + sections + examples + calls, "    ").lstrip() + "\n    "
    return cls


def _of_model(name: str, of: Callable[[Any], Any]) -> property:
    """The attribute `name`: what is `of` the model of a fitted estimator. Arrays cannot be written to, nor is it set."""

    def get(estimator: Any) -> Any:
        value = of(estimator.model_)
        sparse, dense = hasattr(value, "indptr"), isinstance(value, np.ndarray)
        value = value.copy() if sparse else value.view() if dense else value
        for array in (value.data, value.indices, value.indptr) if sparse else (value,) if dense else ():
            array.flags.writeable = False
        return value

    def refuse(estimator: Any, value: Any) -> None:
        raise AttributeError(f"{name} of {type(estimator).__name__} is that of its fitted model and cannot be set; fit again")

    return property(get, refuse)


def _words(choices: tuple[str, ...]) -> str:
    return "{" + ", ".join(f'"{choice}"' for choice in choices) + "}" if choices else ""


def _section(title: str, described: list[Field]) -> str:
    return f"\n\n{title}\n{'-' * len(title)}\n" + "\n".join(map(_entry, described))


def _entry(each: Field) -> str:
    """An entry of a section: "C : float, default=1.0", and under it, indented, what it is."""
    kind, text = each.metadata["kind"], each.metadata["text"]
    if each.init and not text:
        known = OPTIONS[each.name]
        text, kind = known.in_python(), kind or _words(known.choices)
    kind = kind or " or ".join(each.type.split(" | "))
    head = f"{each.name} : {kind}"
    if each.default is not MISSING:
        head += ", default=" + (f'"{each.default}"' if isinstance(each.default, str) else repr(each.default))
    return "\n".join([head, *textwrap.wrap(text, _WIDTH, **_INDENTED)])
