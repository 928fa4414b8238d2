"""Commands made of the verbs of streamcut.api: their signatures become options, their texts help.

A command is the function of its name in a module of this package, or else its verb, whose result is printed. What stands before
the * in its signature are arguments, the rest options; what the verb has, too, takes default and text from there, the rest from
the function itself. With **asked it has all other options of the verb, and those that `has` says, which are made of records of
options (streamcut.options).
Before it runs, files that it would write are refused where they exist, or are among those that it reads.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, Field
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import click

from streamcut import api
from streamcut.cli.help import Command, Grouped
from streamcut.cli.output import is_unfinished, print_json, print_table, refuse_existing
from streamcut.compiler.first_use import first_use
from streamcut.config import CheckpointOptions
from streamcut.errors import StreamcutError
from streamcut.foundation.shown import meant
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.formats.registry import SCORED, Raw
from streamcut.options.option import Option, default_of, flag, options_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from click.shell_completion import CompletionItem

    from streamcut.api.verb import Verb

_Function = TypeVar("_Function", bound=Callable)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([smhd])")
_ENTRY = re.compile(r"^(\w+(?:, \w+)*) {2,}(\S.*)$")
_FILES = ("output", "plot", "cluster", "label_names", "feature_names")
_METAVARS = {
    **dict.fromkeys(("data", "against", "trained_on"), "DATA"),
    **dict.fromkeys(("top", "max_passes"), "N"),
    **dict.fromkeys(("epsilon", "C"), "X"),
    **dict.fromkeys(("group_column", "time_column"), "COLUMN"),
    "memory": "SIZE",
    "plots": "DIR",
    "validation": "PART",
    "store": "PATH",
}
_READ, _WRITTEN = ("model", "data", "against", "validation", "feature_names"), ("output", "plot")  # files
_SHORT = {"output": "-o", "quiet": "-q", "verbose": "-v"}
_IN_PYTHON = ("raw", "path", "replace")  # arguments of verbs that commands do not have
_TEXTS = {  # what many commands have besides their verbs
    "as_json": "print JSON on stdout instead of text",
    "quiet": "print nothing but errors",
    "force": "replace the output file if it exists",
    "ignore_extra_features": "leave out features that the model does not have, instead of refusing the data",
    "memory": "peak memory of the process: 4GB, 512MiB, 50%, auto",
}


_MORE: dict[Callable, tuple[click.Parameter, ...]] = {}  # options of a command besides those of its signature and its verb


def has(*options: click.Parameter) -> Callable[[_Function], _Function]:
    """A decorator: the command has these options besides those of its signature and its verb."""

    def having(function: _Function) -> _Function:
        _MORE[function] = options
        return function

    return having


def command(name: str, run: Callable | None) -> click.Command:
    """The command `name`, which calls `run`, or the verb of that name and prints what it returns."""
    verb = api.VERBS.get(name)
    run = run or _printing(cast("Verb", verb))  # a command without a function is a verb
    more = list(_MORE.get(run, ()))
    prose, texts, examples = _parts(run.__doc__ or "")
    texts = {**_TEXTS, **texts}
    if verb is not None:
        before, of_parameters, first = _parts(verb.__doc__ or "")
        prose, texts, examples = [*before, *prose], {**of_parameters, **texts}, [*first, *examples]
    hints = get_type_hints(run)
    of_verb = dict(inspect.signature(verb).parameters) if verb is not None else {}
    signature, parameters = inspect.signature(run).parameters, list[click.Parameter]()
    for part in signature.values():
        if part.kind is part.VAR_KEYWORD:
            there = {*signature, *_IN_PYTHON, *(str(option.name) for option in more)}
            for other in of_verb.values() if verb is not None and verb.options is None else ():
                if other.name not in there:
                    kind = {"bool": bool, "int": int, "float": float}.get(other.annotation.partition(" ")[0], str)
                    parameters.append(_signed(other.name, kind, other.default, texts[other.name]))
            parameters += more
        elif part.kind is part.POSITIONAL_OR_KEYWORD:
            required, several = part.default is part.empty, hints.get(part.name) is tuple
            parameters.append(click.Argument([part.name], required=required, nargs=-1 if several else 1))
        else:
            default = of_verb.get(part.name, part).default if part.default is part.empty else part.default
            parameters.append(_signed(part.name, hints[part.name], default, texts[part.name]))
    arguments = {parameter.name for parameter in parameters if isinstance(parameter, click.Argument)}
    prose = [re.sub(r"`(\w+)`", lambda word: word[1].upper() if word[1] in arguments else word[0], block) for block in prose]
    text = "\n\n".join([*prose, *(["\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples)] if examples else [])])
    return Command(name, callback=_once_outputs_are_good(name, run, parameters), params=parameters, help=text)


def _printing(verb: Verb) -> Callable:
    """What a command does that has no function here: it takes what its verb takes, and prints the record that it returns."""

    def run(*, as_json: bool = False, **asked: object) -> None:
        from streamcut.foundation.shown import by_name

        record = verb(**asked)
        if record is not None:
            (print_json if as_json else print_table)(record if isinstance(record, Mapping) else by_name(record))

    positional = [part for part in inspect.signature(verb).parameters.values() if part.kind is part.POSITIONAL_OR_KEYWORD]
    run.__signature__ = inspect.Signature([*positional, *inspect.signature(run).parameters.values()])  # type: ignore[attr-defined]
    return run


def _once_outputs_are_good(name: str, run: Callable, parameters: list[click.Parameter]) -> Callable:
    """`run`, called once nothing speaks against writing its outputs (`refuse_existing`). `force` is then also whether --resume
    may replace the model of a run that was interrupted."""
    written = [p for p in parameters if p.name == "file" or (p.name in _WRITTEN and isinstance(p, click.Option))]

    def call(**arguments: Any) -> None:
        read = [arguments.get(key) for key in (_READ if name != "calibrate" else _READ[1:])]  # which may replace its model
        reads = [path for entry in read for path in (entry if isinstance(entry, tuple) else [entry])]
        forced = arguments.get("force")
        for parameter in written:
            if (path := arguments[str(parameter.name)]) is None:
                continue
            force = forced or (bool(arguments.get("resume")) and is_unfinished(path))
            shown = "FILE" if isinstance(parameter, click.Argument) else f"--{parameter.name}"
            refuse_existing(path, shown, force, reads=reads)
            reads.append(path)
            if parameter.name == "output":
                arguments["force"] = force
        run(**arguments)

    return call


def _signed(name: str, hint: Any, default: object, text: str) -> click.Option:
    kind = next((kind for kind in get_args(hint) if kind is not type(None)), hint) if get_origin(hint) is not Literal else hint
    if get_origin(kind) is Literal:
        kind = Choice(get_args(kind))
    text = re.sub(r"`(\w+)`(?= )", r"\1", text[0].upper() + text[1:])
    more: dict[str, Any] = {"help": text if text.endswith((".", "]")) else f"{text}."}
    if kind is bool:
        more |= {"is_flag": True, "callback": {"quiet": _quiet, "as_json": _silence}.get(name)}
    else:
        shown = default is not None and default is not inspect.Parameter.empty
        more |= {"type": kind, "default": default if shown else None, "show_default": shown}
        more["required"] = default is inspect.Parameter.empty
        more["metavar"] = _METAVARS.get(name, None if kind is not str else "FILE" if name in _FILES else name.upper())
    flag = {"as_json": "--json"}.get(name) or f"--{name.replace('_', '-')}"
    return click.Option([flag, *([_SHORT[name]] if name in _SHORT else []), name], **more)


def _parts(doc: str) -> tuple[list[str], dict[str, str], list[str]]:
    """(paragraphs, {parameter: text}, shell examples) of a docstring, without what only Python needs."""
    body, _, shell = inspect.cleandoc(doc).partition("In a shell:\n")
    paragraphs, texts = [], dict[str, str]()
    for block in re.split(r"\n\s*\n", body.partition(">>> ")[0].strip()):
        names: list[str] = []
        for line in block.splitlines():
            if entry := _ENTRY.match(line):
                names = entry[1].split(", ")
                texts |= dict.fromkeys(names, entry[2])
            elif names:
                texts |= {name: f"{texts[name]} {line.strip()}" for name in names}
        if block and not names and not block.startswith(("Raises", "The result", "Options", "{options}")):
            paragraphs.append(re.sub(r"\s*\bRaises [^:]*\Z", "", block))
    return paragraphs, texts, [line.strip() for line in shell.splitlines() if line.strip()]


def _silence(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    if value:
        first_use.announce = lambda: None
    return value


def _quiet(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    if value:
        warnings.simplefilter("ignore", UserWarning)  # until the command ends
    return _silence(ctx, param, value)


class Choice(click.Choice):
    """click's Choice with suggestions; choices other than texts are converted to texts."""

    def __init__(self, choices: Iterable[object]) -> None:
        self._values = {str(choice): choice for choice in choices if choice is not None}
        super().__init__(list(self._values))

    def convert(self, value, param, ctx):
        try:
            return self._values[super().convert(str(value), param, ctx)]
        except click.BadParameter as error:
            close = meant(value, [str(choice) for choice in self.choices])
            self.fail(f"{error.message} {close[:1].upper()}{close[1:]}".rstrip(), param, ctx)


class Several(click.ParamType):
    """One value of another type, or several separated by commas, as a list."""

    def __init__(self, one: click.ParamType | Callable[[str], object]) -> None:
        self.one = click.types.convert_type(one)
        self.name = f"{'name' if isinstance(self.one, click.Choice) else self.one.name}[,…]"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return self.one.get_metavar(param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return self.one.shell_complete(ctx, param, incomplete)

    def convert(self, value, param, ctx) -> list:
        parts = value if isinstance(value, list) else str(value).split(",")
        return [self.one.convert(str(part).strip(), param, ctx) for part in parts]


def _seconds(value: object) -> float:
    """`90s`, `10m`, `2h`, `1d` as seconds; a bare number other than 0 is refused as ambiguous."""
    match = _DURATION.fullmatch(str(value).strip())
    if match is None and str(value).strip() != "0":
        raise click.BadParameter(f"{value!r} is not a duration; write for example 90s, 10m or 2h")
    return float(match[1]) * _SECONDS[match[2]] if match else 0.0


def _number(value: str) -> float | str:
    """A number, or a word, which the check of the option accepts or refuses."""
    try:
        return float(value)
    except ValueError:
        return value.strip()


_KINDS: dict[str, Callable[[str], float | str]] = {"seconds": _seconds, "number": _number, "part": _number}


def options_from(
    record: type[DataclassInstance],
    *,
    only: Collection[str] | None = None,
    without: Collection[str] = (),
    several: Collection[str] = (),
    **changes: Mapping[str, object],
) -> list[click.Parameter]:
    """The options of a record (streamcut.options): `only` these, or all except `without`.

    several   those that take one value or several, as a list
    changes   {option: arguments of click.Option that differ in this command}
    """
    return [
        _recorded(name, record.__dataclass_fields__[name], changes.get(name, {}), name in several)
        for name in options_of(record)
        if name not in without and (only is None or name in only)
    ]


def _type_of(field: Field) -> click.ParamType | Callable[[str], object]:
    """The type of an option on the command line."""
    option: Option = field.metadata["option"]
    if option.choices:
        return Choice(option.choices)
    return _KINDS.get(option.kind) or {"int": int, "float": float, "bool": bool}.get(str(field.type).partition(" ")[0], str)


def _recorded(name: str, field: Field, changes: Mapping[str, object], several: bool) -> click.Option:
    option, default = field.metadata["option"], field.default
    more = {"help": f"{option.help} {option.shell}".strip(), "metavar": option.metavar}
    if field.type == "bool":
        more |= {"is_flag": True, "default": bool(default)}
    elif option.kind in ("names", "texts"):
        more |= {"multiple": True}
        if option.kind == "names":
            more["callback"] = lambda ctx, param, value: ",".join(value) or ()
    else:
        more["type"] = Several(_type_of(field)) if several else _type_of(field)
        if default is not MISSING and default is not None:
            more |= {"default": _as_written(default, option.kind), "show_default": True}
    written = flag(name, option)
    flag_names = [f"{written}/--no-{written[2:]}" if default is True else written, name]
    return _grouped(flag_names, str(changes.get("group", option.group)), {**more, **changes})


def _grouped(names: list[str], group: str, more: Mapping[str, Any]) -> click.Option:
    """An option that help lists under the heading `group`."""
    made = Grouped(names, **{name: value for name, value in more.items() if name != "group"})
    made.group = group
    return made


def _as_written(value: Any, kind: str) -> object:
    """A default as written on the command line."""
    if kind != "seconds":
        return f"{value:g}" if isinstance(value, float) else value
    unit = next(unit for unit in reversed(_SECONDS) if value % _SECONDS[unit] == 0)
    return f"{value / _SECONDS[unit]:g}{unit}"


def set_option(
    record: type[DataclassInstance], names: Collection[str], of: str, *, several: bool, group: str = ""
) -> click.Option:
    """--set NAME=VALUE: the options `names` of a record, each of one kind `of` problem or file only, in one option of the command
    line. The command gets {name: value}, a list of values if there may be `several`."""
    written = {flag(name, options_of(record)[name])[2:]: name for name in names}
    StreamcutError.settings.update(written)

    def parsed(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, object]:
        values: dict[str, object] = {}
        for text in texts:
            name, equals, value = text.partition("=")
            if not equals or (key := written.get(name.replace("_", "-"))) is None or key in values:
                close = meant(name, written) or f"they are {', '.join(written)}"
                raise click.BadParameter(
                    f"{text!r} is not NAME=VALUE of one of its options, each given once; {close}", ctx, param
                )
            kind = click.types.convert_type(_type_of(record.__dataclass_fields__[key]))
            values[key] = (Several(kind) if several else kind).convert(value, param, ctx)
        return values

    listed = "; ".join(f"{name}: {options_of(record)[key].help.rstrip('.')}" for name, key in written.items())
    text = f"An option of one {of}; may be given often. {listed}."
    more = {"multiple": True, "callback": parsed, "metavar": "NAME=VALUE", "help": text}
    return _grouped(["--set", "settings"], group, more)


def checkpoint_of(options: dict[str, Any]) -> CheckpointOptions | None:
    """The checkpoint options, removed from `options`; None: no checkpoints."""
    values = {name: options.pop(name) for name in CheckpointOptions.__dataclass_fields__}
    if values["directory"] is not None:
        return CheckpointOptions(**values)
    if values["resume"]:
        raise click.UsageError("--resume needs --checkpoint DIR.")
    return None


TABLE = ("format", "labels_as", "missing_labels", "categorical", "numeric", "standardise", "text", "text_weights", "ngrams",
         "min_count", "stop_words", "time", "cross", "drop", "id", "header", "missing", "weights", "hash_bits", "max_categories",
         "layer")  # fmt: skip


def taken(options: dict[str, object], names: Collection[str]) -> dict[str, object]:
    """The options `names` of `convert` that are not at their defaults, removed from `options`."""
    values = {name: options.pop(name) for name in names}
    return {name: value for name, value in values.items() if value != default_of(ConvertOptions, name)}


def raw_options(*names: str) -> list[click.Parameter]:
    """The options on how raw input is read."""
    return options_from(Raw, only=names, format={"type": Choice(["auto", *SCORED])})


def raw_of(asked: dict[str, Any], **more: Any) -> Raw:
    """How raw input is read: the options of `raw_options`, removed from `asked`."""
    return Raw(**{name: asked.pop(name) for name in options_of(Raw) if name in asked}, **more)
