"""Options from variables and files: every command's, in their order, and errors that say where a value comes from."""

from __future__ import annotations

import click
import pytest

from streamcut.cli import COMMANDS, cli
from streamcut.cli.settings import _options


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_every_command_has_its_own_variable(name):
    command = cli.get_command(click.Context(cli), name)
    options = _options(command)
    assert {option.envvar for option in options.values()} == {
        f"STREAMCUT_{name}_{key}".upper().replace("-", "_") for key in options
    }
