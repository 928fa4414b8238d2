"""Errors that a user can act on, each with the exit code that the command line gives it."""

import re
from enum import IntEnum

from streamcut.foundation.redaction import redacted

_SWITCHES = {
    "force",
    "resume",
    "standardise",
    "ignore_extra_features",
    "label_weights",
    "keep_zeros",
    "group_by_qid",
    "wide_index",
}
_VALUED = "id|numeric|categorical|text|drop|missing|missing-labels|dtype|labels-as|on-error|strategy"  # with a value
_NUMBER = r" \d+[\d.]*[kMG]i?B\b| \d+\b(?!\.?\d)"
_OPTION = re.compile(rf"(`[^`]*`)|(?<![\w-])--(?:({_VALUED}) ([^\s,;:)]+)|([A-Za-z][\w-]*)({_NUMBER})?)")


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
    """Base of all errors that are not bugs. The message says what is wrong, where, and what to do next, and no password."""

    exit_code = ExitCode.BUG

    on_command_line = False  # whether messages name options as the command line has them, or as Python has them

    def __init__(self, *args: object) -> None:
        super().__init__(*(spelled(redacted(each)) if isinstance(each, str) else each for each in args))

    def __reduce__(self) -> tuple[type, tuple]:
        """For other processes. What tblib, with which Dask sends errors, does by itself fails for those of two built-in kinds."""
        return type(self), self.args


def spelled(text: str) -> str:
    """`text` for those who called: in Python options are arguments; commands in backticks stay as they are."""
    return text if StreamcutError.on_command_line else _OPTION.sub(_in_python, text)


def _in_python(found: re.Match) -> str:
    command, valued, value, other, number = found.groups()
    if command:
        return command
    name = (valued or other).replace("-", "_")
    if number:
        return f"{name}={number.strip() if number.strip().isdigit() else repr(number.strip())}"
    if valued:
        return f"{name}={value!r}"
    return f"{name}=True" if name in _SWITCHES and not found.string.startswith(":", found.end()) else name


class UsageError(StreamcutError, ValueError):
    """An option or argument is wrong; nothing was read or written."""

    exit_code = ExitCode.USAGE


class OtherProgramError(UsageError):
    """The same about options of another program, which the message names as they are written there."""

    def __init__(self, message: str) -> None:
        Exception.__init__(self, message)


class BadInputError(StreamcutError, ValueError):
    """The data given by the user is malformed; the message names file:line:column where there is one."""

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
    """The memory limit cannot be met; the message says the minimum, and so does `least` (bytes), if it is known."""

    exit_code = ExitCode.MEMORY
    least: int | None = None


class DiskFullError(StreamcutError):
    """The disk, a quota or a file size limit is exhausted; the message says the path and the bytes needed."""

    exit_code = ExitCode.DISK_FULL


class NotConvergedError(StreamcutError):
    """Training ended before its certificate reached the tolerance, or passes before a bound was proved, as was required."""

    exit_code = ExitCode.NOT_CONVERGED


class LockedError(StreamcutError):
    """Another process is writing the same target."""

    exit_code = ExitCode.LOCKED


class ClusterLostError(StreamcutError):
    """The Dask cluster is gone; the last checkpoint is valid."""

    exit_code = ExitCode.CLUSTER_LOST
