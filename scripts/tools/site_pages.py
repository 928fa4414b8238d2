"""A hook of MkDocs: pages of the site that are made from the declarations of commands and options, or stand elsewhere in the
repository. build_site.sh runs it."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import click
import griffe
from mkdocs.structure.files import File

import streamcut
from streamcut import sklearn as estimators
from streamcut.cli import COMMANDS, EPILOG, cli

ROOT = Path(__file__).resolve().parents[2]
COPIED = {"reference/format.md": "io/FORMAT.md", "reference/changes.md": "CHANGELOG.md"}


def on_files(files: Any, config: Any) -> Any:
    """Add the pages."""
    pages = {target: (ROOT / source).read_text("utf-8") for target, source in COPIED.items()}
    pages["reference/cli.md"] = commands()
    pages["reference/python.md"] = functions()
    pages["reference/sklearn.md"] = classes()
    for target, text in pages.items():
        files.append(File.generated(config, target, content=text))
    return files


def commands() -> str:
    """Every command with all of its options, under the headings of --help-all."""
    lines = ["# Commands and options", "", "Made from the declarations that the commands themselves use.", ""]
    lines += [f"- [`{name}`](#{name}): {summary}" for name, summary in COMMANDS.items()]
    for name in COMMANDS:
        context = click.Context(cli, info_name="streamcut")
        command = cli.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        lines += ["", f"## {name}", "", "```", " ".join(command.get_usage(inner).split()).removeprefix("Usage: "), "```", ""]
        lines += [_prose(command.help or "")]
        for parameter in command.get_params(inner):
            if isinstance(parameter, click.Option) and not parameter.hidden and (record := parameter.get_help_record(inner)):
                lines += ["", f"`{record[0]}`", f":   {_plain(' '.join(record[1].split()))}"]
    return "\n".join([*lines, "", "## Exit codes and examples", "", "```", _unmarked(EPILOG), "```", ""])


def _prose(text: str) -> str:
    """Help of a command: paragraphs, and what `\\b` keeps together as a block of code."""
    blocks = []
    for block in re.split(r"\n\s*\n", text.strip()):
        blocks.append(f"```\n{_unmarked(block)}\n```" if block.lstrip().startswith("\b") else _plain(" ".join(block.split())))
    return "\n\n".join(blocks)


def _unmarked(text: str) -> str:
    return textwrap.dedent(re.sub(r"^\s*\x08\n?", "", text)).strip("\n")


def _plain(text: str) -> str:
    """What Markdown would take for markup escaped, but for code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part[:1] == "`" else re.sub(r"([*_{])", r"\\\1", part).replace("<", "&lt;") for part in parts)


def functions() -> str:
    """The names of the package."""
    about = "Everything below is an attribute of `streamcut`, loaded when first used."
    return "\n\n".join(["# Python", about, *(f"::: streamcut.{name}" for name in streamcut._HOMES)])


def classes() -> str:
    """The estimators."""
    about = "scikit-learn estimators; they take arrays, sparse matrices, frames and paths of stores."
    return "\n\n".join(["# Estimators", about, *(f"::: streamcut.sklearn.{name}" for name in estimators.__all__)])


class Docstrings(griffe.Extension):
    """Docstrings of functions in Markdown: lists of names and what they mean, examples; those of classes are numpydoc."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        if func.docstring is not None:
            func.docstring.value = _markdown(func.docstring.value)

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        if cls.docstring is not None:
            lines = cls.docstring.value.splitlines()  # indented ones describe a parameter; others have its type
            cls.docstring.value = "\n".join(_plain(line) if line[:1] == " " else line for line in lines)


def _markdown(text: str) -> str:
    blocks = []
    for block in re.split(r"\n\s*\n", text):
        entries = _entries(block)
        if block.lstrip().startswith(">>>"):
            blocks.append(f"```pycon\n{textwrap.dedent(block)}\n```")
        elif entries:
            blocks += [f"`{name}`\n:   {_plain(summary)}" for name, summary in entries]
        else:
            blocks.append(_plain(" ".join(block.split())))
    return "\n\n".join(blocks)


def _entries(block: str) -> list[tuple[str, str]]:
    """(name, what it means) of a block in which each name has its own line, and blanks between it and its meaning."""
    entries: list[tuple[str, str]] = []
    for line in block.splitlines():
        if entry := re.match(r"\s*([\w.*, ()\[\]]*?[\w)\]])\s{2,}(\S.*)$", line):
            entries.append((entry[1], entry[2]))
        elif entries and re.match(r"\s{8,}\S", line):
            entries[-1] = (entries[-1][0], f"{entries[-1][1]} {line.strip()}")
        else:
            return []
    return entries
