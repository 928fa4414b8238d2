"""Option types and options that several commands share."""

from __future__ import annotations

import math
import os
import re
from typing import Any

import click

from streamcut.compiling import compiler
from streamcut.suggestions import meant
from streamcut.units import part_of

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([smhd])")


class Choice(click.Choice):
    """click's, with what was probably meant."""

    def convert(self, value, param, ctx):
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            close = meant(value, [str(choice) for choice in self.choices])
            self.fail(f"{error.message} {close[:1].upper()}{close[1:]}".rstrip(), param, ctx)


class Duration(click.ParamType):
    """`90s`, `10m`, `2h`, `1d` as seconds; a number alone is refused, for it could be any of them."""

    name = "duration"

    def convert(self, value, param, ctx) -> float:
        if isinstance(value, float):
            return value
        match = _DURATION.fullmatch(value.strip())
        if match is None:
            self.fail(f"{value!r} is not a duration; write for example 90s, 10m or 2h", param, ctx)
        seconds = float(match[1]) * _SECONDS[match[2]]
        if not 0 < seconds < math.inf:
            self.fail(f"{value!r} must be above 0", param, ctx)
        return seconds


class Numbers(click.ParamType):
    """One number, or several with commas between them, as a tuple of floats."""

    name = "number[,number…]"

    def convert(self, value, param, ctx) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return tuple(float(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not a number, or several with commas between them", param, ctx)


class NumbersOrParts(Numbers):
    """As Numbers, and per cents as they are written: (50.0, "10%")."""

    name = "number|%[,…]"

    def convert(self, value, param, ctx) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return value
        found: list[Any] = []
        for part in str(value).split(","):
            found += [part.strip()] if part_of(part) is not None else super().convert(part, param, ctx)
        return tuple(found)


def _silence(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    if value:
        compiler.announce = lambda: None
    return value


def _into_environment(ctx: click.Context, param: click.Parameter, value: str | float | None) -> None:
    """Where what reads URLs looks for it, in this process and in those that it starts; as it was before when the command ends."""
    if value is None:
        return
    name = f"STREAMCUT_{str(param.name).upper()}"
    before = os.environ.get(name)
    os.environ[name] = str(value)
    ctx.call_on_close(lambda: os.environ.pop(name, None) if before is None else os.environ.update({name: before}))


def url_options(command: Any) -> Any:
    """--timeout, for every command that takes URLs."""
    text = "How long a server may keep a request waiting before it is made again; URLs only.  [default: 60s]"
    return click.option("--timeout", type=Duration(), metavar="TIME", help=text, expose_value=False, callback=_into_environment)(
        command
    )


def cache_options(command: Any) -> Any:
    """--timeout, --cache-dir and --cache-size, for commands that read stores behind URLs."""
    command = url_options(command)
    for name, metavar, text in (
        ("--cache-size", "SIZE", "Most bytes of --cache-dir.  [default: half of the free space]"),
        ("--cache-dir", "DIR", "Keep what is read of a store behind a URL here, so that the next pass is local."),
    ):
        command = click.option(name, metavar=metavar, help=text, expose_value=False, callback=_into_environment)(command)
    return command


memory_option = click.option(
    "--memory", metavar="SIZE", default="auto", show_default=True, help="Peak memory of the process: 4GB, 512MiB, 50%, auto."
)
json_option = click.option("--json", "as_json", is_flag=True, callback=_silence, help="Print JSON on stdout instead of text.")
quiet_option = click.option("--quiet", "-q", is_flag=True, callback=_silence, help="Print nothing but errors.")
force_option = click.option("--force", is_flag=True, help="Replace the output file if it exists.")
ignore_extra_option = click.option(
    "--ignore-extra-features", is_flag=True, help="Leave out features that the model does not have, instead of refusing the data."
)
index_base_option = click.option(
    "--index-base",
    type=click.IntRange(0, 1),
    help="Number of the first feature in svmlight text.  [default: what it was in the training data, else 1]",
)
strict_option = click.option(
    "--strict", is_flag=True, help="Refuse rows with values that do not fit the model's recipe, instead of counting them."
)
raw_format_option = click.option(
    "--format",
    "raw_format",
    type=Choice(["auto", "svmlight", "csv", "tsv", "jsonl", "parquet", "arrow", "anndata", "10x", "vw"]),
    default="auto",
    show_default=True,
    help="Format of DATA, if it is no store; auto: found from its name and content.",
)
missing_labels_option = click.option(
    "--missing-labels",
    type=Choice(["error", "skip"]),
    default="error",
    show_default=True,
    help="Tables: rows without a label are an error, or left out.",
)
