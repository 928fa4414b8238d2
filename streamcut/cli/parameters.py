"""Option types, options made from their declarations (streamcut.options), and others that several commands share."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable
from dataclasses import MISSING, Field
from typing import Any

import click

from streamcut.cli.help import Grouped
from streamcut.config import CheckpointOptions
from streamcut.errors import StreamcutError
from streamcut.foundation.shown import meant
from streamcut.foundation.units import part_of
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.formats.format import Raw
from streamcut.io.formats.registry import SCORED
from streamcut.options.option import Option, default_of, flag, options_of

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([smhd])")


class Choice(click.Choice):
    """click's Choice with suggestions; choices other than texts are converted to texts."""

    def __init__(self, choices: Iterable[Any]) -> None:
        self._values = {str(choice): choice for choice in choices if choice is not None}
        super().__init__(list(self._values))

    def convert(self, value, param, ctx):
        try:
            return self._values[super().convert(str(value), param, ctx)]
        except click.BadParameter as error:
            close = meant(value, [str(choice) for choice in self.choices])
            self.fail(f"{error.message} {close[:1].upper()}{close[1:]}".rstrip(), param, ctx)


class Duration(click.ParamType):
    """`90s`, `10m`, `2h`, `1d` as seconds; a bare number other than 0 is refused as ambiguous."""

    name = "duration"

    def convert(self, value, param, ctx) -> float:
        if isinstance(value, float) or value.strip() == "0":
            return float(value)
        match = _DURATION.fullmatch(value.strip())
        if match is None:
            self.fail(f"{value!r} is not a duration; write for example 90s, 10m or 2h", param, ctx)
        seconds = float(match[1]) * _SECONDS[match[2]]
        if not seconds < math.inf:
            self.fail(f"{value!r} is too long", param, ctx)
        return seconds


class Several(click.ParamType):
    """One value of another type, or several separated by commas, as a list."""

    def __init__(self, one: Any) -> None:
        self.one = click.types.convert_type(one)
        self.name = f"{'name' if isinstance(self.one, click.Choice) else self.one.name}[,…]"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return self.one.get_metavar(param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        return self.one.shell_complete(ctx, param, incomplete)

    def convert(self, value, param, ctx) -> list[Any]:
        parts = value if isinstance(value, list) else str(value).split(",")
        return [self.one.convert(str(part).strip(), param, ctx) for part in parts]


class NumberOrPart(click.ParamType):
    """A number, or a percentage."""

    name = "number"

    def convert(self, value, param, ctx) -> float | str:
        try:
            return value.strip() if part_of(value) is not None else float(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor a percentage such as '10%'", param, ctx)


class NumberOrAuto(click.ParamType):
    """A number, or "auto"."""

    name = "number"

    def convert(self, value, param, ctx) -> float | str:
        try:
            return value if value == "auto" else float(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor auto", param, ctx)


_KINDS: dict[str, Any] = {"seconds": Duration(), "number": NumberOrAuto(), "part": NumberOrPart()}


def options_from(
    record: Any,
    *,
    only: Collection[str] | None = None,
    without: Collection[str] = (),
    several: Collection[str] = (),
    **changes: dict[str, Any],
) -> list[click.Parameter]:
    """The options of a record (streamcut.options): `only` these, or all except `without`.

    several   those that take one value or several, as a list
    changes   {option: arguments of click.option that differ in this command}
    """

    return [
        _option(name, record.__dataclass_fields__[name], changes.get(name, {}), name in several)
        for name in options_of(record)
        if name not in without and (only is None or name in only)
    ]


def type_of(field: Field) -> Any:
    """The type of an option on the command line."""
    known: Option = field.metadata["option"]
    if known.choices:
        return Choice(known.choices)
    return _KINDS.get(known.kind) or {"int": int, "float": float, "bool": bool}.get(str(field.type).partition(" ")[0], str)


def _option(name: str, field: Field, changes: dict[str, Any], several: bool) -> Grouped:
    known, given = field.metadata["option"], field.default
    more = {"group": known.group, "help": f"{known.help} {known.shell}".strip(), "metavar": known.metavar}
    if field.type == "bool":
        more |= {"is_flag": True, "default": bool(given)}
    elif known.kind in ("names", "texts"):
        more |= {"multiple": True}
        if known.kind == "names":
            more["callback"] = lambda ctx, param, value: ",".join(value) or ()
    else:
        more["type"] = Several(type_of(field)) if several else type_of(field)
        if given is not MISSING and given is not None:
            more |= {"default": _as_written(given, known.kind), "show_default": True}
    written = flag(name, known)
    flag_names = [f"{written}/--no-{written[2:]}" if given is True else written, name]
    return Grouped(flag_names, **{**more, **changes})


def _as_written(value: Any, kind: str) -> Any:
    """A default as written on the command line."""
    if kind != "seconds":
        return f"{value:g}" if isinstance(value, float) else value
    unit = next(unit for unit in reversed(_SECONDS) if value % _SECONDS[unit] == 0)
    return f"{value / _SECONDS[unit]:g}{unit}"


def set_option(record: Any, names: Collection[str], of: str, *, several: bool, group: str = "") -> Grouped:
    """--set NAME=VALUE: the options `names` of a record, each of one kind `of` problem or file only, in one option of the command
    line. The command gets {name: value}, a list of values if there may be `several`."""
    written = {flag(name, options_of(record)[name])[2:]: name for name in names}
    StreamcutError.settings.update(written)

    def parsed(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for text in given:
            name, equals, value = text.partition("=")
            if not equals or (key := written.get(name.replace("_", "-"))) is None or key in values:
                close = meant(name, written) or f"they are {', '.join(written)}"
                raise click.BadParameter(
                    f"{text!r} is not NAME=VALUE of one of its options, each given once; {close}", ctx, param
                )
            kind = click.types.convert_type(type_of(record.__dataclass_fields__[key]))
            values[key] = (Several(kind) if several else kind).convert(value, param, ctx)
        return values

    listed = "; ".join(f"{name}: {options_of(record)[key].help.rstrip('.')}" for name, key in written.items())
    text = f"An option of one {of}; may be given often. {listed}."
    more: dict[str, Any] = {"multiple": True, "callback": parsed, "metavar": "NAME=VALUE", "help": text}
    return Grouped(["--set", "settings"], group=group, **more)


def checkpoint_of(options: dict[str, Any]) -> CheckpointOptions | None:
    """The checkpoint options, removed from `options`; None: no checkpoints."""
    given = {name: options.pop(name) for name in CheckpointOptions.__dataclass_fields__}
    if given["directory"] is not None:
        return CheckpointOptions(**given)
    if given["resume"]:
        raise click.UsageError("--resume needs --checkpoint DIR.")
    return None


TABLE = ("format", "labels_as", "missing_labels", "categorical", "numeric", "standardise", "text", "text_weights", "ngrams",
         "min_count", "stop_words", "time", "cross", "drop", "id", "header", "missing", "weights", "hash_bits", "max_categories",
         "layer")  # fmt: skip


def taken(options: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """The options `names` of `convert` that were given, removed from `options`."""
    given = {name: options.pop(name) for name in names}
    return {name: value for name, value in given.items() if value != default_of(ConvertOptions, name)}


def raw_options(*names: str) -> list[click.Parameter]:
    """The options on how raw input is read."""
    return options_from(Raw, only=names, format={"type": Choice(["auto", *SCORED])})
