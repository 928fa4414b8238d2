"""Help: one screen of it by --help, all of it by --help-all."""

from __future__ import annotations

import re

import click
import pytest

from streamcut.cli import COMMANDS, cli
from streamcut.cli.help import COLUMNS, LINES, MAIN


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_fits_on_a_screen_and_all_of_it_is_there(run, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    words = [name] * bool(name)
    code, brief, err = run(*words, "--help")
    assert (code, err) == (0, "")
    lines = brief.splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= COLUMNS
    code, whole, err = run(*words, "--help-all")
    assert (code, err) == (0, "")
    assert whole.startswith(lines[0])
    if name:
        for option in cli.get_command(click.Context(cli), name).params:
            if isinstance(option, click.Option):
                assert max(option.opts, key=len) in whole
                assert option.help
        for option in MAIN.get(name, ()):
            assert f"--{option}" in brief
            assert len(re.findall(rf"^  {'streamcut'} {name} ", brief, re.MULTILINE)) >= 1
    else:
        assert all(f"  {each} " in brief for each in COMMANDS)
        assert "Exit codes:" in whole


def test_only_commands_have_main_options():
    assert set(MAIN) <= set(COMMANDS)
