"""Options from outside the command line: `streamcut --config FILE COMMAND`, and STREAMCUT_<COMMAND>_<OPTION> variables.

The command line takes precedence, then the variable, then the table [command] of the file, then keys above all tables of the
file, which apply to every command with that option.
"""

from __future__ import annotations

from typing import cast

import click

from streamcut.errors import NotFoundError, UsageError
from streamcut.foundation.opened import read_file
from streamcut.foundation.shown import meant, plain


def configurable(command: click.Command, name: str) -> click.Command:
    """`command`, whose options may come from variables."""
    for long, option in _options(command).items():
        option.envvar = f"STREAMCUT_{name}_{long}".replace("-", "_").upper()
    return command


def read(context: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
    """Use the content of the TOML file at `path` as defaults of commands. Raises NotFoundError, UsageError."""
    if path is None:
        return None
    import tomllib  # only needed with a file

    try:
        content = tomllib.loads(read_file(path).decode())
    except OSError as error:
        raise NotFoundError(f"--config: {path}: {error.strerror}") from None
    except ValueError as error:  # a syntax error has its line and column
        raise UsageError(f"--config: {path}: {error}") from None
    group = cast(click.Group, context.command)
    commands = ((name, group.get_command(context, name)) for name in group.list_commands(context))
    options = {name: _options(command) for name, command in commands if command is not None}
    flags = {plain(long) for names in options.values() for long in names}
    context.default_map = {name: {} for name in options}
    for name, value in content.items():
        if isinstance(value, dict):
            if name not in options:
                raise UsageError(f"{path}: [{name}] is not a command; {meant(name, options) or 'see `streamcut --help`'}")
        elif plain(name) not in flags:
            raise UsageError(f"{path}: no command has an option {name}; {meant(name, flags) or 'see `streamcut --help`'}")
        else:
            for command in options:
                _take(context.default_map[command], options[command], name, value)
    for command, table in content.items():
        for name, value in table.items() if isinstance(table, dict) else ():
            if not _take(context.default_map[command], options[command], name, value):
                close = meant(name, options[command]) or f"see `streamcut {command} --help`"
                raise UsageError(f"{path}: {command} has no option {name}; {close}")
    return path


def _options(command: click.Command) -> dict[str, click.Option]:
    """The options of a command by their long names, without leading dashes."""
    options = [option for option in command.params if isinstance(option, click.Option)]
    return {long[2:]: option for option in options for long in option.opts if long.startswith("--")}


def _take(defaults: dict[str, object], options: dict[str, click.Option], name: str, value: object) -> bool:
    """Put `value` into `defaults` as it is written on the command line; False: there is no option of that name."""
    option = next((option for long, option in options.items() if plain(long) == plain(name)), None)
    if option is None:
        return False
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(part, dict | list) for part in value)):
        raise UsageError(f"--config: {name}: a table is not a text, a number or a list of them")
    if option.multiple:
        value = [str(part) for part in (value if isinstance(value, list) else [value])]
    elif isinstance(value, list):
        value = ",".join(map(str, value))
    defaults[str(option.name)] = value if option.multiple or (option.is_flag and isinstance(value, bool)) else str(value)
    return True
