"""Commands made of the verbs of streamcut.api: their signatures become options, their texts help.

A command is a module of this package with `run`. What stands before the * in its signature are arguments, the rest options; what
the verb has, too, takes type, default and text from there, the rest from `run` itself. OPTIONS are made of records of options.
"""

from __future__ import annotations

import inspect
import re
import warnings
from importlib import import_module
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click

from streamcut import api
from streamcut.cli.help import Command
from streamcut.cli.parameters import Choice
from streamcut.compiler.first_use import first_use

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
_SHORT = {"output": "-o", "quiet": "-q", "verbose": "-v"}
_TEXTS = {  # what many commands have beside their verbs
    "as_json": "print JSON on stdout instead of text",
    "quiet": "print nothing but errors",
    "force": "replace the output file if it exists",
    "ignore_extra_features": "leave out features that the model does not have, instead of refusing the data",
    "memory": "peak memory of the process: 4GB, 512MiB, 50%, auto",
}


def command(name: str) -> click.Command:
    """The command `name`."""
    module, verb = import_module(f"streamcut.cli.{name}"), api.VERBS.get(name)
    run = module.run
    prose, own, examples = _parts(run.__doc__ or "")
    texts = {**_TEXTS, **own}
    if verb is not None:
        of_verb = _parts(verb.__doc__ or "")
        prose, texts, examples = [*of_verb[0], *prose], {**of_verb[1], **texts}, [*of_verb[2], *examples]
    hints = {name: hint for name, hint in get_type_hints(run).items() if name != "return"}
    known = inspect.signature(verb).parameters if verb is not None else {}
    parameters: list[click.Parameter] = []
    for each in inspect.signature(run).parameters.values():
        if each.kind is each.VAR_KEYWORD:
            parameters += module.OPTIONS
        elif each.kind is each.POSITIONAL_OR_KEYWORD:
            required = each.default is each.empty
            parameters.append(click.Argument([each.name], required=required, nargs=-1 if hints[each.name] is tuple else 1))
        else:
            default = known[each.name].default if each.default is each.empty and each.name in known else each.default
            parameters.append(_option(each.name, hints[each.name], default, texts[each.name]))
    arguments = {each.name for each in parameters if isinstance(each, click.Argument)}
    prose = [re.sub(r"`(\w+)`", lambda found: found[1].upper() if found[1] in arguments else found[0], block) for block in prose]
    text = "\n\n".join([*prose, *(["\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples)] if examples else [])])
    return Command(name, callback=run, params=parameters, help=text)


def _option(name: str, hint: Any, default: Any, text: str) -> click.Option:
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
