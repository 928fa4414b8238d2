"""The command line from outside: exit codes, what goes to stdout and what to stderr, help that is the documentation."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

import streamcut
import streamcut.cli
from streamcut import load_model
from streamcut.cli import COMMANDS, cli
from streamcut.errors import ExitCode

pytestmark = [pytest.mark.smoke, pytest.mark.process]

STREAMCUT = [sys.executable, "-P", "-c", "from streamcut.cli import main; main()"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """rows.svm and the store rows.zarr (600 rows, labels ±1), one.zarr with one class, and the model m.npz of rows.zarr."""
    folder = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    X = sp.random_array((600, 30), density=0.3, rng=rng, format="csr", data_sampler=rng.normal)
    y = np.where(X @ rng.normal(size=30) + 0.3 * rng.normal(size=600) > 0, 1, -1)
    dump_svmlight_file(sp.csr_matrix(X), y, str(folder / "rows.svm"), zero_based=False)
    dump_svmlight_file(sp.csr_matrix(X), np.ones(600), str(folder / "one.svm"), zero_based=False)
    for name in ("rows", "one"):
        call("convert", folder / f"{name}.svm", folder / f"{name}.zarr")
    call("train", folder / "rows.zarr", "--output", folder / "m.npz", "--tol", "1e-4", "--quiet")
    return folder


def call(*arguments, **options) -> subprocess.CompletedProcess:
    """The command in a process of its own; it must succeed."""
    return subprocess.run([*STREAMCUT, *map(str, arguments)], check=True, capture_output=True, text=True, timeout=120, **options)


# --- help ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_documents_itself(name):
    command = cli.get_command(click.Context(cli), name)
    assert "Example" in command.help
    assert COMMANDS[name].endswith(".")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts}"
            assert parameter.help.endswith((".", "]")), f"{name} {parameter.opts}"


@pytest.mark.parametrize("name", ["convert", "train", "predict"])
def test_usage_errors_load_nothing_heavy(name):
    code = (
        f"import sys\nfrom streamcut.cli import main\ntry: main([{name!r}, '--nonsense', 'a', 'b', 'c', 'd'])\n"
        "except SystemExit as end: assert end.code == 2, end.code\nprint(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {"numpy", "numba", "scipy", "zarr", "sklearn"}


def test_every_exit_code_is_in_the_help():
    told = {int(code) for code in re.findall(r"(?:^|\s{2,})(\d+) [a-z]", streamcut.cli.EPILOG)}
    assert told == set(ExitCode)


# --- train --------------------------------------------------------------------------------------------------------------------


def test_train_says_its_certificate_in_words(run, folder, tmp_path):
    code, out, err = run("train", folder / "rows.zarr", "--output", tmp_path / "m.npz", "--C", 0.5)
    assert (code, out) == (0, "")
    assert "Converged: the gap is within the tolerance (tol 0.001). The" in err
    model = load_model(tmp_path / "m.npz")
    assert model.C == 0.5
    assert model.certificate.converged
    assert model.n_features == 30


def test_train_in_json_and_quietly(run, folder, tmp_path):
    code, out, err = run("train", folder / "rows.zarr", "--output", tmp_path / "m.npz", "--json")
    events = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert [event["event"] for event in events] == ["plan", *["iteration"] * (len(events) - 2), "result"]
    assert events[-1]["stop_reason"] == "converged"
    assert events[-1]["gap"] == pytest.approx(events[-1]["primal"] - events[-1]["lower_bound"])
    assert run("train", folder / "rows.zarr", "--output", tmp_path / "m.npz", "--quiet", "--force") == (0, "", "")


def test_a_dry_run_prints_the_plan_and_writes_nothing(run, folder, tmp_path):
    code, out, _ = run("train", folder / "rows.zarr", "--dry-run", "--memory", "2GB")
    assert code == 0
    assert re.search(r"cuts, if dual ascent gains little .* MB\n", out)
    code, out, _ = run("train", folder / "rows.zarr", "--dry-run", "--json", "--memory", "2GB")
    assert json.loads(out)["budget"] == 2e9
    code, out, err = run("train", folder / "rows.zarr", "--dry-run", "--memory", "1MB")
    assert (code, out) == (ExitCode.MEMORY, "")
    assert "at least" in err


def test_not_converged_is_an_error_only_on_request(run, folder, tmp_path):
    short = ["train", folder / "rows.zarr", "--output", tmp_path / "m.npz", "--max-passes", 2, "--tol", 1e-9]
    code, _, err = run(*short)
    assert code == 0
    assert "Not converged: the allowed number of passes" in err
    code, _, err = run(*short, "--require-convergence", "--force")
    assert code == ExitCode.NOT_CONVERGED
    assert not load_model(tmp_path / "m.npz").certificate.converged


# --- predict ------------------------------------------------------------------------------------------------------------------


def test_predict_from_a_store_a_file_and_stdin(run, folder, tmp_path):
    code, labels, err = run("predict", folder / "m.npz", folder / "rows.zarr")
    assert (code, err) == (0, "")
    assert len(labels.split()) == 600
    assert run("predict", folder / "m.npz", folder / "rows.svm") == (0, labels, "")
    with open(folder / "rows.svm") as rows:
        assert call("predict", folder / "m.npz", "-", stdin=rows).stdout == labels
    code, scores, _ = run("predict", folder / "m.npz", folder / "rows.zarr", "--answer", "scores")
    _, both, _ = run("predict", folder / "m.npz", folder / "rows.zarr", "--answer", "both")
    pairs = zip(labels.split("\n"), scores.split("\n"), strict=True)
    assert both == "\n".join(f"{label} {score}".strip() for label, score in pairs)
    assert [float(s) > 0 for s in scores.split()] == [label == "1" for label in labels.split()]


def test_predict_writes_a_file_whole_or_not_at_all(run, folder, tmp_path):
    target = tmp_path / "labels.txt"
    _, labels, _ = run("predict", folder / "m.npz", folder / "rows.zarr")
    assert run("predict", folder / "m.npz", folder / "rows.zarr", "-o", target) == (0, "", "")
    assert target.read_text() == labels
    assert run("predict", folder / "m.npz", folder / "rows.zarr", "-o", target)[0] == ExitCode.USAGE
    (tmp_path / "bad.svm").write_text((folder / "rows.svm").read_text() + "1 31:1\n")
    code, _, err = run("predict", folder / "m.npz", tmp_path / "bad.svm", "-o", target, "--force")
    assert code == ExitCode.BAD_INPUT
    assert "feature 30 (0-based)" in err
    assert target.read_text() == labels
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.svm", "labels.txt"]
    assert run("predict", folder / "m.npz", tmp_path / "bad.svm", "--ignore-extra-features")[0] == 0


def test_a_full_disk(folder, tmp_path):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*STREAMCUT, "predict", str(folder / "m.npz"), str(folder / "rows.zarr")],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == ExitCode.DISK_FULL
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr


def test_a_file_that_may_not_grow(folder, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    command = [*STREAMCUT, "predict", str(folder / "m.npz"), str(folder / "rows.zarr"), "-o", str(tmp_path / "labels.txt")]
    done = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True)
    assert done.returncode == ExitCode.DISK_FULL
    assert "File too large" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_stops_reading_is_no_error(folder):
    command = [*STREAMCUT, "predict", str(folder / "m.npz"), str(folder / "rows.zarr")]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


# --- evaluate, verify, export -----------------------------------------------------------------------------------------------


def test_without_a_command_there_is_help(run):
    code, out, err = run()
    assert (code, err) == (0, "")
    assert out == run("--help")[1]
    assert out.splitlines()[0].startswith("Usage: ")
    assert "\n  convert " in out


# --- how many options there are -----------------------------------------------------------------------------------------------


def test_there_are_no_more_options_than_anybody_can_learn(run):
    """Whoever adds one takes another out: of `train` 55, of all commands 240, of different names 110."""
    listed = re.compile(r"^  (?:-[A-Za-z], )?(--[A-Za-z][A-Za-z0-9-]*)", re.MULTILINE)
    options = {name: listed.findall(run(name, "--help-all")[1]) for name in COMMANDS}
    assert len(options) == 12
    assert 40 < len(options["train"]) <= 55
    assert sum(map(len, options.values())) <= 240
    assert len(set().union(*options.values())) <= 110
