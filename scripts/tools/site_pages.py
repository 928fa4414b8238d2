"""A hook of MkDocs: pages of the site that are made from the declarations of commands and options, or stand elsewhere in the
repository. build_site.sh runs it."""

from __future__ import annotations

import re
import textwrap
from inspect import getdoc, signature
from pathlib import Path
from typing import Any

import click
from mkdocs.structure.files import File

import streamcut
from streamcut import estimators
from streamcut.cli import COMMANDS, EPILOG, cli

ROOT = Path(__file__).resolve().parents[2]
COPIED = {"papers.md": "scripts/papers/papers.md", "reference/format.md": "io/FORMAT.md", "reference/changes.md": "CHANGELOG.md"}


def on_files(files: Any, config: Any) -> Any:
    """Add the pages."""
    pages = {target: (ROOT / source).read_text("utf-8") for target, source in COPIED.items()}
    pages["reference/cli.md"] = commands()
    pages["reference/python.md"] = functions()
    pages["reference/estimators.md"] = classes()
    for target, text in pages.items():
        files.append(File.generated(config, target, content=text))
    return files


def commands() -> str:
    """Every command with all of its options, under the headings of --help-all."""
    lines = ["# Commands and options", "", "Made from the declarations that the commands themselves use.", ""]
    lines += [f"- [`{name}`](#{name}): {told}" for name, told in COMMANDS.items()]
    for name in COMMANDS:
        context = click.Context(cli, info_name="streamcut")
        command = cli.get_command(context, name)
        assert command is not None
        own = click.Context(command, info_name=name, parent=context)
        lines += ["", f"## {name}", "", "```", " ".join(command.get_usage(own).split()).removeprefix("Usage: "), "```", ""]
        lines += [_prose(command.help or ""), "", "| option | what it does |", "|---|---|"]
        for parameter in command.get_params(own):
            if isinstance(parameter, click.Option) and not parameter.hidden and (record := parameter.get_help_record(own)):
                lines.append(f"| `{_cell(record[0])}` | {_cell(_plain(record[1]))} |")
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
    return "".join(part if part.startswith("`") else re.sub(r"([<*_])", r"\\\1", part) for part in re.split(r"(`[^`]*`)", text))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def functions() -> str:
    """The names of the package."""
    lines = ["# Python", "", "Everything below is an attribute of `streamcut`, loaded when first used.", ""]
    for name in streamcut._HOMES:
        lines += ["", *_described(f"streamcut.{name}", getattr(streamcut, name))]
    return "\n".join(lines)


def classes() -> str:
    """The estimators."""
    lines = ["# Estimators", "", "scikit-learn estimators; they take arrays, sparse matrices, frames and paths of stores.", ""]
    for name in estimators.__all__:
        lines += ["", *_described(f"streamcut.estimators.{name}", getattr(estimators, name))]
    return "\n".join(lines)


def _described(name: str, thing: Any) -> list[str]:
    """A heading, how it is called, and its docstring."""
    found = signature(thing).parameters.values()
    called = ", ".join(str(each.replace(annotation=each.empty)) for each in found if each.kind is not each.VAR_KEYWORD)
    taken = "  # and options by name" if any(each.kind is each.VAR_KEYWORD for each in found) else ""
    head = textwrap.fill(f"{name}({called})", 90, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    title = f"## {name.split('.')[-1]}"
    return [title, "", "```python", head + taken, "```", "", *_docstring(getdoc(thing) or "")]


def _docstring(text: str) -> list[str]:
    """Paragraphs; lists of names and what they mean as tables; examples as code."""
    lines: list[str] = []
    for block in re.split(r"\n\s*\n", text):
        entries = _entries(block)
        if block.lstrip().startswith(">>>"):
            lines += ["```pycon", *textwrap.dedent(block).splitlines(), "```", ""]
        elif entries:
            lines += [
                "| name | what it is |",
                "|---|---|",
                *(f"| `{name}` | {_cell(_plain(told))} |" for name, told in entries),
                "",
            ]
        else:
            lines += [_plain(" ".join(block.split())), ""]
    return lines


def _entries(block: str) -> list[tuple[str, str]]:
    """(name, what it means) of a block in which each name has its own line, and blanks between it and its meaning."""
    found: list[tuple[str, str]] = []
    for line in block.splitlines():
        if entry := re.match(r"\s*([\w.*, ()\[\]]*?[\w)\]])\s{2,}(\S.*)$", line):
            found.append((entry[1], entry[2]))
        elif found and re.match(r"\s{8,}\S", line):
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
        else:
            return []
    return found
