"""Option types, options made from their declarations (streamcut.options), and others that several commands share."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Collection, Iterable
from dataclasses import MISSING, Field
from functools import wraps
from typing import Any, NamedTuple

import click

from streamcut.cli.help import Grouped
from streamcut.compiler.first_use import first_use
from streamcut.config import CheckpointOptions, TrainOptions
from streamcut.foundation.shown import meant
from streamcut.foundation.units import part_of
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.formats.format import Raw
from streamcut.io.formats.registry import SCORED
from streamcut.options.option import default_of, flag, options_of

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
    """`90s`, `10m`, `2h`, `1d` as seconds; a bare number is refused as ambiguous."""

    name = "duration"

    def convert(self, value, param, ctx) -> float:
        if isinstance(value, float):
            return value
        match = _DURATION.fullmatch(value.strip())
        if match is None:
            self.fail(f"{value!r} is not a duration; write for example 90s, 10m or 2h", param, ctx)
        seconds = float(match[1]) * _SECONDS[match[2]]
        if not seconds < math.inf:
            self.fail(f"{value!r} is too long", param, ctx)
        return seconds


class Numbers(click.ParamType):
    """One number, or several separated by commas, as a tuple of floats."""

    name = "number[,number…]"

    def convert(self, value, param, ctx) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return tuple(float(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not a number, or several separated by commas", param, ctx)


class NumbersOrParts(Numbers):
    """Like Numbers, with percentages kept as written: (50.0, "10%")."""

    name = "number|%[,…]"

    def convert(self, value, param, ctx) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return value
        found: list[Any] = []
        for part in str(value).split(","):
            found += [part.strip()] if part_of(part) is not None else super().convert(part, param, ctx)
        return tuple(found)


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


_KINDS: dict[str, dict[str, Any]] = {
    "seconds": {"type": Duration()},
    "numbers": {"type": Numbers()},
    "parts": {"type": NumbersOrParts()},
    "number": {"type": NumberOrAuto()},
    "part": {"type": NumberOrPart()},
    "names": {"multiple": True, "callback": lambda ctx, param, value: ",".join(value) or ()},
    "texts": {"multiple": True},
    "": {},
}


def options_from(
    record: Any, *, only: Collection[str] | None = None, without: Collection[str] = (), **changes: dict[str, Any]
) -> Callable[[Any], Any]:
    """A decorator that gives a command the options of a record (streamcut.options): `only` these, or all except `without`.

    `changes` are {option: arguments of click.option that differ in this command}.
    """

    def decorated(command: Any) -> Any:
        for name in reversed(options_of(record)):
            if name not in without and (only is None or name in only):
                command = _option(name, record.__dataclass_fields__[name], changes.get(name, {}))(command)
        return command

    return decorated


def _option(name: str, field: Field, changes: dict[str, Any]) -> Any:
    known, given = field.metadata["option"], field.default
    more = {"cls": Grouped, "group": known.group, "help": f"{known.help} {known.shell}".strip(), "metavar": known.metavar}
    more |= _KINDS[known.kind]
    if known.choices:
        more["type"] = Choice(known.choices)
    elif field.type == "bool":
        more |= {"is_flag": True, "default": bool(given)}
    elif not known.kind:
        more["type"] = {"int": int, "float": float}.get(str(field.type).partition(" ")[0])
    if given is not MISSING and given is not None and field.type != "bool" and not more.get("multiple"):
        more |= {"default": _as_written(given, known.kind), "show_default": True}
    written = flag(name, known)
    flags = [f"{written}/--no-{written[2:]}" if given is True else written, *([f"--{known.also}"] if known.also else [])]
    return click.option(*flags, name, **{**more, **changes})


def _as_written(value: Any, kind: str) -> Any:
    """A default as written on the command line."""
    if kind in ("numbers", "parts"):
        return f"{value:g}"
    if kind != "seconds":
        return value
    unit = next(unit for unit in reversed(_SECONDS) if value % _SECONDS[unit] == 0)
    return f"{value / _SECONDS[unit]:g}{unit}"


def checkpoint_of(options: dict[str, Any]) -> CheckpointOptions | None:
    """The checkpoint options, removed from `options`; None: no checkpoints."""
    given = {name: options.pop(name) for name in CheckpointOptions.__dataclass_fields__}
    if given["directory"] is not None:
        return CheckpointOptions(**given)
    if given["resume"]:
        raise click.UsageError("--resume needs --checkpoint DIR.")
    return None


def _silence(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    if value:
        first_use.announce = lambda: None
    return value


def _quiet(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    if value:
        warnings.simplefilter("ignore", UserWarning)  # until the command ends
    return _silence(ctx, param, value)


memory_option = options_from(TrainOptions, only=("memory",), memory={"metavar": "SIZE"})
json_option = click.option("--json", "as_json", is_flag=True, callback=_silence, help="Print JSON on stdout instead of text.")
quiet_option = click.option("--quiet", "-q", is_flag=True, callback=_quiet, help="Print nothing but errors.")
trained_on_option = click.option(
    "--trained-on",
    metavar="STORE",
    help="With --certified: the training rows of MODEL, for a free intercept and scaled features.",
)
force_option = click.option("--force", is_flag=True, help="Replace the output file if it exists.")
ignore_extra_option = click.option(
    "--ignore-extra-features", is_flag=True, help="Ignore features that the model does not have, instead of refusing the data."
)


_WITH = "With --standard-errors"


class Errors(NamedTuple):
    """How to compute standard errors."""

    trained_on: str | None
    robust: bool
    cluster: str | None

    def of(self, model: Any, memory: str) -> Any:
        """The StandardErrors of a model."""
        import streamcut
        from streamcut.foundation.opened import read_lines

        clusters = self.cluster if self.cluster in (None, "qid") else read_lines(self.cluster, "clusters")
        return streamcut.standard_errors(model, self.trained_on, robust=self.robust, clusters=clusters, memory=memory)


def errors_options(command: Any) -> Any:
    """--standard-errors and what goes with it; the command gets `errors`, None without the option."""

    @wraps(command)
    def checked(*, standard_errors: bool, trained_on: str | None, robust: bool, cluster: str | None, **more: Any) -> Any:
        if standard_errors and trained_on is None:
            raise click.UsageError("--standard-errors need --trained-on DATA, the training rows.")
        if not standard_errors and (trained_on is not None or robust or cluster is not None):
            raise click.UsageError("--trained-on, --robust and --cluster are for --standard-errors.")
        if robust and cluster is not None:
            raise click.UsageError("--cluster is robust, too: give one of --robust and --cluster.")
        return command(errors=Errors(trained_on, robust, cluster) if standard_errors else None, **more)

    for option in (
        click.option(
            "--cluster",
            metavar="FILE",
            help=f"{_WITH}: rows of one cluster may depend on each other. A file with a cluster on each line, or qid.",
        ),
        click.option("--robust", is_flag=True, help=f"{_WITH}: the sandwich estimator, valid even if the model is misspecified."),
        click.option("--trained-on", metavar="DATA", help=f"{_WITH}: the training rows; takes a pass."),
        click.option("--standard-errors", is_flag=True, help="Also show standard errors, z, p-values and 95 % intervals."),
    ):
        checked = option(checked)
    return checked


TABLE = ("format", "labels_as", "missing_labels", "categorical", "numeric", "standardise", "text", "text_weights", "ngrams",
         "min_count", "stop_words", "time", "cross", "drop", "id", "header", "missing", "weights", "hash_bits", "max_categories",
         "layer")  # fmt: skip
_TABLES = "Tables and text (see convert --help-all)"


def table_options(command: Any) -> Any:
    """--label and the options of `convert` on how features are made, for commands that make temporary stores."""
    again = {name: {"group": _TABLES} for name in TABLE}
    command = options_from(ConvertOptions, only=TABLE, **again)(command)
    return click.option(
        "--label",
        cls=Grouped,
        group=_TABLES,
        metavar="COLUMN",
        help="DATA is a table: the column with the labels, or a comparison ('delay>15').",
    )(command)


def taken(options: dict[str, Any], more: Collection[str] = ()) -> dict[str, Any]:
    """The `table_options` given, except --label, removed from `options`."""
    given = {name: options.pop(name) for name in (*TABLE, *more)}
    return {name: value for name, value in given.items() if value != default_of(ConvertOptions, name)}


def raw_options(*names: str) -> Callable[[Any], Any]:
    """The options on how raw input is read."""
    return options_from(Raw, only=names, format={"type": Choice(["auto", *SCORED])})
