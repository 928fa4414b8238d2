"""Options from variables and files: every command's, in their order, and errors that say where a value comes from."""

from __future__ import annotations

import json

import click
import numpy as np
import pytest

import streamcut
from streamcut.cli import COMMANDS, cli
from streamcut.errors import ExitCode

pytestmark = pytest.mark.smoke


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store of 200 rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    place = tmp_path_factory.mktemp("settings") / "rows.zarr"
    with streamcut.create(place) as new:
        new.append(X, np.where(X[:, 0] > 0, 1.0, -1.0))
    return place


@pytest.fixture
def budget(run, store, tmp_path):
    """The memory limit of a dry run with these arguments and, unless None, this text as its file."""

    def found(*arguments, file: str | None = None) -> int:
        if file is not None:
            (tmp_path / "run.toml").write_text(file, encoding="utf-8")
        config = () if file is None else ("--config", tmp_path / "run.toml")
        code, out, err = run(*config, "train", store, "--dry-run", "--json", *arguments)
        assert code == 0, err
        return json.loads(out)["budget"]

    return found


def test_the_command_line_comes_before_variables_and_these_before_the_file(budget, monkeypatch):
    file = 'memory = "10GB"\n[fit]\nmemory = "50GB"\n'  # far more than this process has by now
    assert budget(file=file) == 10e9
    file += '[train]\nmemory = "20GB"\n'
    assert budget(file=file) == 20e9
    monkeypatch.setenv("STREAMCUT_TRAIN_MEMORY", "30GB")
    assert budget(file=file) == 30e9
    assert budget("--memory", "40GB", file=file) == 40e9


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_every_command_has_its_own_variable(name):
    options = [each for each in cli.get_command(click.Context(cli), name).params if isinstance(each, click.Option)]
    long = [next(opt[2:] for opt in reversed(each.opts) if opt.startswith("--")) for each in options]
    assert [each.envvar for each in options] == [f"STREAMCUT_{name}_{key}".upper().replace("-", "_") for key in long]


def test_the_file_may_be_named_by_a_variable_and_have_options_of_other_commands_above_all_tables(budget, monkeypatch, tmp_path):
    (tmp_path / "other.toml").write_text('shuffle = 3\nmemory = "20GB"', encoding="utf-8")  # shuffle is convert's
    monkeypatch.setenv("STREAMCUT_CONFIG", str(tmp_path / "other.toml"))
    assert budget() == 20e9


def test_a_training_from_a_file_is_that_of_the_command_line(run, store, tmp_path, monkeypatch):
    """With lists, flags of one choice, settings and a checkpoint."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text(
        f'quiet = true\n[train]\noutput = "a.npz"\nC = [0.1, 1]\nvalidation = "{store}"\nsolver = "ocas"\n'
        'set = "max-cuts=30"\ncheckpoint-every = "5m"\ncheckpoint = "run"\n[predict]\nanswer = "scores"\n',
        encoding="utf-8",
    )
    assert run("--config", "run.toml", "train", store) == (0, "", "")
    flags = ("--C", "0.1,1", "--validation", store, "--solver", "ocas", "--set", "max-cuts=30", "--quiet")
    assert run("train", store, "--output", "b.npz", *flags) == (0, "", "")
    a, b = streamcut.load_model("a.npz"), streamcut.load_model("b.npz")
    assert (a.parameters, a.solver) == (b.parameters, "ocas")
    np.testing.assert_array_equal(a.weights, b.weights)
    from_file = run("--config", "run.toml", "predict", "a.npz", store)
    assert from_file == run("predict", "a.npz", store, "--answer", "scores") != run("predict", "a.npz", store)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("memry = '1GB'", "no command has an option memry; did you mean memory?"),
        ("[train]\nmax_pases = 3", "train has no option max_pases; did you mean max-passes?"),
        ("[train]\nshuffle = 3", "train has no option shuffle; "),  # one of convert
        ("[trian]\nC = 1", "[trian] is not a command; did you mean train?"),
        ("[train]\nC = 1979-05-27", "'--C'"),
        ("[train]\nC = {a = 1}", "C: a table is not a text, a number or a list of them"),
        ("[train]\nbias = true", "'--bias'"),
        ("[train]\nC 1", "at line 2, column 3"),
        ("memory = 'lots'", "'lots' is not a size"),
        ("[train]\nloss = 'hnge'", "Did you mean hinge?"),
        ("[train]\nC = [1, 2]", "need --validation DATA or --folds NUMBER to choose the best one."),
    ],
)
def test_what_a_file_cannot_say(run, store, tmp_path, monkeypatch, file, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text(file, encoding="utf-8")
    code, out, err = run("--config", "run.toml", "train", store, "--dry-run")
    assert (code, out) == (ExitCode.USAGE, "")
    assert message in err


def test_a_file_that_is_not_there(run, store):
    code, _, err = run("--config", "nowhere.toml", "train", store, "--dry-run")
    assert (code, err) == (ExitCode.NOT_FOUND, "streamcut: --config: nowhere.toml: No such file or directory\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "No such command 'trian'; did you mean train?"),
        (["xyz"], "No such command 'xyz'; see streamcut --help"),
        (["train", "x", "--solver", "bundle"], "Did you mean bundle-dca?"),
        (["convert", "x", "--format", "arow"], "Did you mean arrow?"),
    ],
)
def test_the_command_line_suggests_what_was_meant(run, arguments, message):
    code, _, err = run(*arguments)
    assert code == ExitCode.USAGE
    assert message in err
