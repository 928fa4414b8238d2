"""Options from outside the command line: --config FILE, and STREAMCUT_<COMMAND>_<OPTION> variables.

Every command has them, for each of its options. The command line takes precedence, then the variable, then the table [command]
of the file, then keys above all tables of the file, which apply to every command with that option.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from typing import Any

import click

from streamcut.cli.output import note
from streamcut.errors import NotFoundError, StreamcutError, UsageError
from streamcut.foundation.fields import shown
from streamcut.foundation.opened import read_file
from streamcut.foundation.shown import meant, plain

_RUNNING = "streamcut.cli.settings"  # in a context's meta: the context of the command that runs
_PREFIX = "STREAMCUT_"
_HEADER = re.compile(r"""\s*\[\s*["']?([^\[\]"']*?)["']?\s*\]""")
_MOST = 1 << 20  # bytes of a file
_MOST_BITS = 1024  # of a number, as in float64


def configurable(command: click.Command, name: str) -> click.Command:
    """`command`, extended to take options from variables and --config."""
    options = _options(command)
    if "config" not in options:
        options["config"] = click.Option(
            ["--config"],
            metavar="FILE",
            is_eager=True,
            expose_value=False,
            callback=_read,
            help=f"Options from a TOML file; {_variable(name, '<option>')} variables come before it.",
        )
        command.params.append(options["config"])
        for key, option in options.items():
            names = [long[2:] for long in option.opts if long.startswith("--")]
            option.envvar = _variable(name, key) if len(names) == 1 else [_variable(name, each) for each in names]
    return command


def with_source(error: click.UsageError | StreamcutError, running: click.Context) -> None:
    """Add to the message where the option comes from, if not from the command line."""
    context: click.Context | None = running.meta.get(_RUNNING)
    text = error.message if isinstance(error, click.ClickException) else str(error)
    for key, option in _options(context.command).items() if context is not None else ():
        if isinstance(error, click.BadParameter) and error.param is not None:
            named = error.param is option
        else:
            name = key.replace("-", "_")
            named = re.match(rf"{re.escape(name)}: ", text) is not None or re.search(rf"--{re.escape(key)}\b", text) is not None
        source = _source(context, key, option) if named and context is not None else ""
        if source:
            text += f" (--{key} comes from {source})"
    if isinstance(error, click.ClickException):
        error.message = text  # type: ignore[misc]  # final for those who read it
    elif error.args:
        error.args = (text, *error.args[1:])


def _options(command: click.Command) -> dict[str, click.Option]:
    """The options of a command by their long names, without leading dashes."""
    found: dict[str, click.Option] = {}
    for option in command.params:
        if isinstance(option, click.Option):
            found |= {name[2:]: option for name in option.opts if name.startswith("--")}
    return found


def _variable(command: str, key: str) -> str:
    return f"{_PREFIX}{command}_{key}".replace("-", "_").upper()


def _source(context: click.Context, key: str, option: click.Option) -> str:
    """Where the value of `option` comes from; "" for the command line and its default."""
    assert option.name is not None
    source = context.meta.get(f"{_RUNNING}.{key}", "")
    variable = _variable(str(context.info_name), key)
    if os.environ.get(variable):
        source = variable
    given = context.get_parameter_source(option.name)
    return "" if given is click.core.ParameterSource.COMMANDLINE else source


def _read(context: click.Context, parameter: click.Parameter, path: str | None) -> None:
    """Use the content of the file at `path` as defaults of the running command."""
    context.meta[_RUNNING] = context
    options, command = _options(context.command), str(context.info_name)
    start = _variable(command, "")
    for variable in os.environ:  # not all are ours: clusters name services in variables
        name = plain(variable.removeprefix(start))
        if variable.startswith(start) and name not in map(plain, options) and (close := meant(name, options)):
            note(f"streamcut: the variable {variable} is not read; {close}")
    if path is None:
        return
    config = _Config(path)
    content = config.content
    commands = context.find_root().command
    assert isinstance(commands, click.Group)
    names = commands.list_commands(context)
    tables = {name: table for name, table in content.items() if isinstance(table, dict)}
    for name in tables:
        if name not in names:
            raise UsageError(
                f"{config.place(name)}: [{name}] is not a command; {meant(name, names) or 'use ' + ', '.join(names)}"
            )
    shared = {name: value for name, value in content.items() if name not in tables}
    own = tables.get(command, {})
    by_name = {plain(key): key for key in options if key != "config"}
    for name in own:
        if plain(name) not in by_name:
            close = meant(name, by_name.values()) or f"see `streamcut {command} --help`"
            raise UsageError(f"{config.place(command, name)}: {command} has no option {name}; {close}")
    for name in shared:
        if plain(name) not in by_name:
            _expect_of_any(config.place(name), name, commands, names, context)
    context.default_map = defaults = {}
    for above, table in (((), shared), ((command,), own)):
        where = f" [{command}]" if above else ""
        for name, value in table.items():
            if (key := by_name.get(plain(name))) is not None:
                option = options[key]
                try:
                    defaults[option.name] = _value(value, option)
                except ValueError as error:
                    raise UsageError(f"{config.place(*above, name)}:{where} {name}: {error}") from None
                context.meta[f"{_RUNNING}.{key}"] = f"{path}{where}"


class _Config:
    """The parsed file `path`, in `content`. Raises NotFoundError, and UsageError naming the line."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._text = read_file(path, _MOST).decode()
        except OSError as error:
            raise NotFoundError(f"--config: {path}: {error.strerror}") from None
        except ValueError as error:
            raise UsageError(f"--config: {path}: {error}") from None
        try:
            self.content = _parsed(self._text)
        except _BeyondParsingError as error:
            raise UsageError(f"--config: {path}:{self._wrong_line()}: {error}") from None
        except ValueError as error:  # with line and column
            raise UsageError(f"--config: {path}: {error}") from None

    def place(self, *names: str) -> str:
        """FILE:LINE of an option or a table; FILE if no line begins with it."""
        *tables, name = names
        whole, wanted, table = ".".join(names), ".".join(tables), ""
        for number, line in enumerate(self._text.splitlines(), start=1):
            if header := _HEADER.match(line):
                table = header[1]
                if table == whole or table.startswith(f"{whole}."):
                    return f"{self._path}:{number}"
            elif table == wanted and re.match(rf"""\s*["']?{re.escape(name)}["']?\s*[.=]""", line):
                return f"{self._path}:{number}"
        return self._path

    def _wrong_line(self) -> int:
        """The number of the first line that cannot be parsed for its size."""
        ends = [k + 1 for k, each in enumerate(self._text) if each == "\n"]
        return bisect_left(ends, True, key=lambda end: _is_beyond(self._text[:end])) + 1


class _BeyondParsingError(ValueError):
    """Not a syntax error with a line number, but too much of something."""


def _is_beyond(text: str) -> bool:
    try:
        _parsed(text)
    except ValueError as error:
        return isinstance(error, _BeyondParsingError)
    return False


def _parsed(text: str) -> dict[str, Any]:
    import tomllib  # only needed with a file

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise _BeyondParsingError("lists or tables nested more than a thousand deep") from None
    except ValueError:
        raise _BeyondParsingError("a number of thousands of digits") from None


def _expect_of_any(path: str, name: str, commands: click.Group, names: list[str], context: click.Context) -> None:
    """Raise UsageError unless some command has the option `name`."""
    known: set[str] = set()
    for each in names:
        command = commands.get_command(context, each)
        assert command is not None
        known |= set(_options(command))
    if plain(name) not in {plain(key) for key in known}:
        raise UsageError(f"{path}: no command has an option {name}; {meant(name, known) or 'see `streamcut --help`'}")


def _value(value: Any, option: click.Option) -> Any:
    """`value` of a file as written on the command line. Raises ValueError."""
    if option.is_flag:
        if not isinstance(value, bool):
            raise ValueError(f"{_shown(value)} is neither true nor false")
        return value
    if isinstance(value, list) and value and all(map(_plain_value, value)):
        texts = [str(part) for part in value]
        return texts if option.multiple else ",".join(texts)
    if not _plain_value(value):
        raise ValueError(f"{_shown(value)} is not a text, a number or a list of them")
    return [str(value)] if option.multiple else str(value)


def _plain_value(value: Any) -> bool:
    huge = isinstance(value, int) and value.bit_length() > _MOST_BITS
    return isinstance(value, str | int | float) and not isinstance(value, bool) and not huge


def _shown(value: Any) -> str:
    """A value in a message; one that may be deeply nested is named by its kind."""
    return "a table" if isinstance(value, dict) else "a list" if isinstance(value, list) else shown(value)
