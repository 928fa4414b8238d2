"""Errors that a user can act on, each with its exit code on the command line."""

import re
import shlex
from enum import IntEnum
from typing import ClassVar

from streamcut.foundation.redaction import redacted

_SWITCHES = {
    "force",
    "resume",
    "standardise",
    "ignore_extra_features",
    "label_weights",
    "keep_zeros",
    "without_recipe",
    "without_probabilities",
    "group_by_qid",
    "wide_index",
}
_OPTION = re.compile(r"(`[^`]*`)|(?<![\w-])--([A-Za-z][\w-]*)(?:=(?:\x02(.*?)\x02(.*?)\x03|([\w.-]*\w)))?", re.DOTALL)


class ExitCode(IntEnum):
    """Exit codes of the command line (README, "Exit codes")."""

    DONE = 0
    BUG = 1
    USAGE = 2
    BAD_INPUT = 3
    NOT_FOUND = 4
    CORRUPT = 5
    INCOMPLETE = 6
    MEMORY = 7
    DISK_FULL = 8
    NOT_CONVERGED = 9
    LOCKED = 10
    CLUSTER_LOST = 11
    HUNG_UP = 129
    INTERRUPTED = 130
    TERMINATED = 143


class StreamcutError(Exception):
    """Base of all errors that are not bugs. The message says what is wrong, where, and what to do next; it holds no password."""

    exit_code = ExitCode.BUG

    on_command_line = False  # whether messages spell options as on the command line or as in Python
    settings: ClassVar[set[str]] = set()  # options that the running command has as --set NAME=VALUE

    def __init__(self, *args: object) -> None:
        super().__init__(*(spelled(redacted(argument)) if isinstance(argument, str) else argument for argument in args))

    def __reduce__(self) -> tuple[type, tuple]:
        """For pickling. The default of tblib, with which Dask sends errors, fails for classes with two built-in bases."""
        return type(self), self.args


def given(option: str, value: object) -> str:
    """An option with its value, for messages: `--drop 'no 3'` on the command line, `drop='no 3'` in Python."""
    return f"--{option}=\x02{value}\x02{value!r}\x03"


def spelled(text: str) -> str:
    """`text` with options spelled as the caller writes them: messages say --drop, --dtype=float64 or `given(…)`.

    In Python options are arguments. Commands in backticks stay as they are.
    """
    return _OPTION.sub(_for_shells if StreamcutError.on_command_line else _in_python, text)


def _for_shells(match: re.Match) -> str:
    command, name, value, _, word = match.groups()
    if name in StreamcutError.settings:
        value = value or word or ("yes" if name.replace("-", "_") in _SWITCHES else None)
        return f"--set {name}" + ("" if value is None else f"={shlex.quote(value)}")
    return command or " ".join([f"--{name}", *map(shlex.quote, filter(None, (value, word)))])


def _in_python(match: re.Match) -> str:
    command, name, _, value, word = match.groups()
    if command:
        return command
    name, value = name.replace("-", "_"), value or (word and (word if word.isdigit() else repr(word)))
    if name.startswith("no_"):
        return f"{name.removeprefix('no_')}=False"
    switched = name in _SWITCHES and not match.string.startswith(":", match.end())
    return f"{name}={value}" if value else f"{name}=True" if switched else name


class UsageError(StreamcutError, ValueError):
    """An option or argument is wrong; nothing was read or written."""

    exit_code = ExitCode.USAGE


class BadInputError(StreamcutError, ValueError):
    """The user's data is malformed; the message names file:line:column where it can."""

    exit_code = ExitCode.BAD_INPUT


class NotFoundError(StreamcutError, FileNotFoundError):
    """A path does not exist, cannot be read, or is not what the command needs."""

    exit_code = ExitCode.NOT_FOUND

    def __str__(self) -> str:  # OSError would print a tuple
        return str(self.args[0]) if self.args else ""


class CorruptError(StreamcutError):
    """A stored file is damaged; the message names the shard and the array."""

    exit_code = ExitCode.CORRUPT


class IncompleteError(StreamcutError):
    """A store was never finished; `convert --resume` continues it."""

    exit_code = ExitCode.INCOMPLETE


class MemoryBudgetError(StreamcutError, MemoryError):
    """The memory limit cannot be met; the message and `least` (bytes) give the minimum, if there is one."""

    exit_code = ExitCode.MEMORY
    least: int | None = None


class DiskFullError(StreamcutError):
    """The disk, a quota or a file size limit is exhausted; the message gives the path and the bytes needed."""

    exit_code = ExitCode.DISK_FULL


class NotConvergedError(StreamcutError):
    """Training ended before its certificate reached the required tolerance, or passes ran out before a bound was proved."""

    exit_code = ExitCode.NOT_CONVERGED


class LockedError(StreamcutError):
    """Another process is writing the same target."""

    exit_code = ExitCode.LOCKED


class ClusterLostError(StreamcutError):
    """The Dask cluster is gone; the last checkpoint is valid."""

    exit_code = ExitCode.CLUSTER_LOST
