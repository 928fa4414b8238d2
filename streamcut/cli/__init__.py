"""The command line. A command's module is imported when the command runs, so that help and usage errors are instant.

`made.py` makes a command of the function of its name, with the options that the library declares (streamcut.options). `output.py`
writes for people and for programs. Commands call the functions of the library and compute nothing. A verb of streamcut.api that
has a `command` is one; what it has besides its verb, and how its result is shown, is a function of its name here.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import NoReturn, TextIO

import click
from click.shell_completion import shell_complete

from streamcut import __version__
from streamcut.api import VERBS
from streamcut.cli import output, signals
from streamcut.cli.help import help_all, is_whole
from streamcut.cli.settings import configurable, read
from streamcut.compiler.first_use import NOTICE, first_use
from streamcut.errors import ExitCode, StreamcutError
from streamcut.foundation.files import UNREACHABLE, disk_full
from streamcut.foundation.interrupts import waits_end_by
from streamcut.foundation.shown import VisibleFormatter, meant, visible
from streamcut.foundation.systems import expect_room

COMMANDS: dict[str, str] = {name: verb.command for name, verb in VERBS.items() if verb.command} | {
    "info": "Describe a store or a model file; check a store.",
    "example": "Write small data to try things on.",
}
_HOMES = {  # modules of this package
    **dict.fromkeys(("convert", "info"), "stores"),
    **dict.fromkeys(("train", "fit"), "training"),
    **dict.fromkeys(("predict", "explain", "evaluate"), "rows"),
}
EPILOG = """\b
Examples:
  streamcut example clicks clicks.csv
  streamcut fit clicks.csv --label click -o m.npz
  streamcut convert train.svm.gz train.zarr
  streamcut train train.zarr -o m.npz --memory 4GB
  streamcut predict m.npz test.svm > labels.txt
  streamcut evaluate m.npz test.zarr
  streamcut verify m.npz train.zarr
  streamcut verify liblinear.model train.zarr --C 1

\b
Exit codes:
  0 done              5 damaged file           9 not converged
  1 bug               6 unfinished store      10 locked
  2 usage             7 memory limit          11 cluster lost
  3 bad input data    8 disk full            129 hung up
  4 not found                                130 interrupted
                                             143 terminated"""

_EXITS = {
    **dict.fromkeys(UNREACHABLE, ExitCode.NOT_FOUND),
    errno.EIO: ExitCode.CORRUPT,
    errno.ENOSPC: ExitCode.DISK_FULL,
    errno.EDQUOT: ExitCode.DISK_FULL,
    errno.EFBIG: ExitCode.DISK_FULL,
}
_COMPLETE = "_STREAMCUT_COMPLETE"  # _STREAMCUT_COMPLETE=bash_source streamcut prints the completion script for bash
_SIGPIPE = 128 + 13  # SIGPIPE: the code that a shell reports for a program whose reader has closed the pipe


class _Commands(click.Group):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:  # a newcomer's first try
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), help_all()]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if is_whole(ctx):
            super().format_help(ctx, formatter)
            return
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_commands(ctx, formatter)
        formatter.write("More: streamcut COMMAND --help; examples and exit codes: streamcut --help-all\n")

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        from streamcut.cli.made import command

        run = vars(import_module(f"streamcut.cli.{_HOMES.get(cmd_name, 'using')}")).get(cmd_name)
        return configurable(command(cmd_name, run), cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(f"No such command {args[0]!r}; {meant(args[0], COMMANDS) or 'see streamcut --help'}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        with _in_words_of_commands(), _warnings_as_notes():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="streamcut")
@click.option(
    "--config", metavar="FILE", envvar="STREAMCUT_CONFIG", is_eager=True, expose_value=False, callback=read,
    help="Options from a TOML file: keys, and tables [COMMAND]; STREAMCUT_<COMMAND>_<OPTION> variables come before it.",
)  # fmt: skip
def cli() -> None:
    """Train models with a certificate on sparse data that does not fit in memory."""


class _NoFrames:
    """Hides pandas: pyarrow would import it, in a fifth of a second, to learn that a number is not a frame."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("commands have no frames", name=name)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit with one of ExitCode."""
    if instruction := os.environ.get(_COMPLETE):  # a shell asks for completions
        sys.exit(shell_complete(cli, {}, "streamcut", _COMPLETE, instruction))
    output.survive_full_stderr()
    signals.install()
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(VisibleFormatter())
    first_use.announce = lambda: click.echo(NOTICE, err=True)
    if (sys.argv[1:] if arguments is None else arguments)[:1] not in (["export"], ["example"]):  # their libraries may need frames
        sys.meta_path.insert(0, _NoFrames)
    try:
        with waits_end_by(signals.leaving):
            code = _run(arguments)
    finally:
        if _NoFrames in sys.meta_path:  # whoever called this may have frames
            sys.meta_path.remove(_NoFrames)
    signals.ended(code)
    sys.exit(code)


def _run(arguments: list[str] | None) -> int:
    try:
        try:
            expect_room()
            # not click's main(), which swallows broken pipes and loses which signal came
            with (
                _in_words_of_commands(),
                cli.make_context("streamcut", sys.argv[1:] if arguments is None else arguments) as context,
            ):
                cli.invoke(context)
        finally:
            _flush()
        return ExitCode.DONE
    except click.exceptions.Exit as request:
        return request.exit_code
    except click.ClickException as error:
        error.message = visible(error.message)  # type: ignore[misc]
        error.show()
        return ExitCode.USAGE
    except StreamcutError as error:
        return _say(str(error), error.exit_code)
    except BrokenPipeError:
        return _SIGPIPE
    except OSError as error:
        if error.errno not in _EXITS:
            raise
        where = f"{error.filename}: " if error.filename is not None else ""
        return _say(f"{where}{error.strerror}", _EXITS[error.errno])
    except MemoryError as error:
        return _say(f"out of memory ({error}); give a smaller --memory or free some", ExitCode.MEMORY)
    except RuntimeError as error:
        if "can't start new thread" not in str(error):
            raise
        return _say("the system allows no more threads, or no memory for them; raise `ulimit -u`, -d or -v", ExitCode.MEMORY)
    except signals.Terminated:
        return _say("terminated", ExitCode.TERMINATED)
    except signals.HungUp:
        return _say("hung up", ExitCode.HUNG_UP)
    except (KeyboardInterrupt, click.Abort):
        return _say("interrupted", ExitCode.INTERRUPTED)


@contextmanager
def _in_words_of_commands() -> Iterator[None]:
    """Messages name options as the command line does."""
    before, StreamcutError.on_command_line = StreamcutError.on_command_line, True
    try:
        yield
    finally:
        StreamcutError.on_command_line = before


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Show the package's Python warnings as lines on stderr; --quiet omits them."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        others = warnings.showwarning

        def show(
            message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None,
            line: str | None = None,
        ) -> None:  # fmt: skip
            if category is UserWarning:
                click.echo(f"note: {visible(str(message))}", err=True)
            else:
                others(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


def _say(message: str, code: int) -> int:
    output.note(f"streamcut: {message}")
    return code


def _flush() -> None:
    """Flush stdout while a failure can still be reported. What cannot be written is dropped: Python would try again."""
    try:
        with disk_full("standard output"):
            sys.stdout.flush()
    except (OSError, StreamcutError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise
