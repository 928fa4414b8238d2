"""What an option is: a field of a record, made by `option`, and what is made of it."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable
from dataclasses import Field, dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from streamcut.errors import UsageError
from streamcut.foundation.shown import unknown
from streamcut.foundation.units import plain

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    _Record: TypeAlias = DataclassInstance | type[DataclassInstance]

_Function = TypeVar("_Function", bound=Callable)
_WIDTH, _INDENT, _NAMES = 128, 4, 17  # of docstrings


@dataclass(frozen=True, slots=True)
class Check:
    """Which values are accepted: `complaint` ends the message about others. None, "off" or "not given", is if it is declared.

    numbers  values have to be numbers, and no booleans, before `good` is asked
    words    values that are accepted besides
    """

    complaint: str
    good: Callable[[Any], bool]
    numbers: bool = True
    words: Callable[[Any], bool] = lambda value: False

    def __call__(self, value: object) -> bool:
        if value is None or self.words(value):
            return True
        if self.numbers and (isinstance(value, bool) or not isinstance(value, int | float)):
            return False
        return self.good(value)


def whole(least: int) -> Check:
    """Whole numbers from `least` on."""
    return Check(f"is not a whole number, {least} or above", lambda value: value >= least and value % 1 == 0)


def at_least(least: float) -> Check:
    """Numbers from `least` on."""
    return Check(f"is too small; the least is {least}", lambda value: value >= least)


ABOVE_0 = Check("is not a number above 0", lambda value: 0.0 < value < math.inf)
NOT_NEGATIVE = Check("is not a number that is 0 or above", lambda value: 0.0 <= value < math.inf)
FINITE = Check("is not a finite number", math.isfinite)
SECONDS = Check("is not seconds above 0", lambda value: value > 0.0)
SIZE = Check("is no text such as '2GB' or 'auto'", lambda value: isinstance(value, str), numbers=False)


@dataclass(frozen=True, slots=True)
class Option:
    """What is known of an option besides its name, its default and its type.

    help     what it does, for the command line and for Python
    group    the heading under which the command line lists it
    shell    more for the command line; `python`: more for docstrings
    flag     its name for users, on the command line and in Python, with - for _; "": that of the field
    metavar  what stands for the value in help
    kind     how the command line reads it: "seconds", "part" (a number or per cents), "number" (or "auto"), "names"
             (separated by commas, given once or often), "texts" (given once or often); "": as it is annotated
    choices  the values that it may have; `check`: whether one makes sense
    tasks    that have it; None: all. `solvers`: names, families or kinds of those that have it, with blanks between; None: all
    kernels  those that use it, with blanks between; None: all
    role     "resource": where and how fast a run goes; "limit": how long; "watcher": what is measured meanwhile. These never
             decide which bits come out; "" does
    setting  of one loss, solver, kernel or task: the command line has it as --set NAME=VALUE
    tried    other values with which tests show that it has an effect, or pairs (what else is asked for, other value)
    """

    help: str = ""
    group: str = ""
    shell: str = ""
    python: str = ""
    flag: str = ""
    metavar: str | None = None
    kind: str = ""
    choices: tuple[object, ...] = ()
    check: Check | None = None
    tasks: tuple[str, ...] | None = None
    solvers: str | None = None
    kernels: str | None = None
    role: str = ""
    setting: bool = False
    tried: tuple[object, ...] = ()

    def of_solver(self, *names: str) -> bool:
        """Whether a solver that goes by these names has it."""
        return self.solvers is None or not set(names).isdisjoint(self.solvers.split())

    def in_python(self) -> str:
        """What it does, for a docstring: other options go by their names in Python."""
        help_ = re.sub(r"  \[default: (.*?)\]", r" Default: \1.", self.help)
        text = re.sub(r"--([A-Za-z][\w-]*)", lambda match: f"`{match[1].replace('-', '_')}`", help_)
        return f"{text} {self.python}".strip()


_ANY = Option()  # of a field that is no option


def option(default: object, help: str = "", **more: Any) -> Any:  # noqa: A002 - the usual word
    """A field of a record of options; `more` as Option has it."""
    return field(default=default, metadata={"option": Option(help, **more)})


def changed(record: _Record, name: str, **more: object) -> Any:
    """Option `name` of `record` for a class derived from it, where it is declared a little differently."""
    declaration = record.__dataclass_fields__[name]
    return field(default=declaration.default, metadata={"option": replace(declaration.metadata["option"], **more)})


def options_of(record: _Record) -> dict[str, Option]:
    """The options of a record, or of its class, by their names in Python; it may have other fields."""
    return {name: member.metadata["option"] for name, member in record.__dataclass_fields__.items() if member.metadata}


def default_of(record: _Record, name: str) -> Any:
    """The default of option `name`."""
    return record.__dataclass_fields__[name].default


def flag(name: str, declaration: Option) -> str:
    """An option as it is written on the command line."""
    return "--" + (declaration.flag or name.replace("_", "-"))


def expect_valid(record: DataclassInstance, *, flags: bool = False) -> None:
    """Numbers become plain ones of the declared type, in place; raise UsageError, naming the option, for a value that it does
    not take.

    `flags`: messages name options as the command line does.
    """
    for name, member in record.__dataclass_fields__.items():
        if (raw := getattr(record, name)) is member.default:  # which is valid, and most are it
            continue
        object.__setattr__(record, name, value := declared(plain(raw), member.type))
        declaration = member.metadata.get("option", _ANY)
        chosen = not declaration.choices or value in declaration.choices
        absent = value is None and member.default is not None and "None" not in str(member.type)  # it has no state "not given"
        if chosen and (declaration.check is None or (declaration.check(value) and not absent)):
            continue
        where = flag(name, declaration)
        where = where if flags else where[2:].replace("-", "_")
        if not chosen:
            raise UsageError(f"{where}: {unknown(value, [str(choice) for choice in declaration.choices if choice is not None])}")
        raise UsageError(f"{where}: {value!r} {declaration.check.complaint}")


def declared(value: object, kind: object) -> object:
    """A number as its option is declared, so that 1, 1.0 and NumPy's give the same bits; anything else unchanged."""
    made = {"float": float, "int": int}.get(str(kind.__name__ if isinstance(kind, type) else kind).partition(" ")[0])
    if made is None or isinstance(value, bool) or not isinstance(value, int | float):
        return value
    try:
        return number if (number := made(value)) == value else value
    except (OverflowError, ValueError):  # infinity or NaN where a whole number belongs, an integer beyond float64: not valid
        return value


def having(record: _Record, said: Callable[[Option], bool]) -> tuple[str, ...]:
    """The options of a record of which something is said."""
    return tuple(name for name, declaration in options_of(record).items() if said(declaration))


def documented(record: _Record) -> Callable[[_Function], _Function]:
    """A decorator: {options} in the docstring of a function becomes a list of them."""

    def described(function: _Function) -> _Function:
        if function.__doc__:  # python -OO has none
            fields = [record.__dataclass_fields__[name] for name in options_of(record)]
            function.__doc__ = function.__doc__.replace("    {options}", "\n".join(map(_entry, fields)))
        return function

    return described


def _entry(member: Field) -> str:
    declaration: Option = member.metadata["option"]
    text = declaration.in_python()
    words = [f'"{choice}"' if isinstance(choice, str) else str(choice) for choice in declaration.choices if choice is not None]
    if words:
        text += " One of " + ", ".join(words) + "."
    if not (member.default is None or member.default is False or member.default == ()):
        text += " Default: " + (f'"{member.default}"' if isinstance(member.default, str) else f"{member.default}") + "."
    hanging = " " * (_INDENT + _NAMES)
    head = f"{' ' * _INDENT}{(declaration.flag.replace('-', '_') or member.name) + '  ':<{_NAMES}}"
    return textwrap.fill(text, _WIDTH, initial_indent=head, subsequent_indent=hanging, break_on_hyphens=False)
