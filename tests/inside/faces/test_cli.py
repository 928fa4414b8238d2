"""What ends a command, and its help: one screen of it by --help, all of it by --help-all."""

from __future__ import annotations

import click
import pytest

from streamcut.cli import COMMANDS, cli, main
from streamcut.cli.help import COLUMNS, LINES, MAIN
from streamcut.cli.signals import HungUp, Terminated
from streamcut.errors import ExitCode

pytestmark = pytest.mark.smoke


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(28, "No space left on device", "x"), 8),
        (PermissionError(13, "Permission denied", "x"), 4),
        (OSError(30, "Read-only file system", "x"), 4),
        (OSError(5, "Input/output error", "x"), 5),
        (MemoryError("tried to allocate"), 7),
        (KeyboardInterrupt(), 130),
        (Terminated(), 143),
        (HungUp(), 129),
        (RuntimeError("can't start new thread"), 7),
        (BrokenPipeError(32, "Broken pipe"), 141),
    ],
)
def test_every_end_has_its_code(run, monkeypatch, error, code):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("streamcut.io.opening.open_dataset", fail)
    ended, out, err = run("info", "x.zarr")
    assert (ended, out, "Traceback" in err) == (code, "", False)


def test_a_bug_shows_its_traceback(monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("streamcut.io.opening.open_dataset", fail)
    with pytest.raises(ZeroDivisionError, match="a bug"):  # the interpreter prints it, and ends with 1
        main(["info", "x.zarr"])
    assert ExitCode.BUG == 1


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_fits_on_a_screen_and_all_of_it_is_there(run, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    (_, brief, _), (_, whole, _) = (run(*[name] * bool(name), flag) for flag in ("--help", "--help-all"))
    lines = brief.splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= COLUMNS
    assert whole.startswith(lines[0])
    assert set(MAIN) <= set(COMMANDS)
    if not name:
        assert all(f"  {command} " in brief for command in COMMANDS)
        assert "Exit codes:" in whole
        return
    assert f"\n  streamcut {name} " in brief or name not in MAIN
    assert "Example" in whole
    assert all(f"--{option}" in brief for option in MAIN.get(name, ()))
    for option in cli.get_command(click.Context(cli), name).params:
        if isinstance(option, click.Option):
            assert max(option.opts, key=len) in whole
            assert option.help.endswith((".", "]")), option.opts
