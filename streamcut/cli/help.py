"""Help that fits on a screen: what a command does, examples, the most common options; --help-all shows everything."""

from __future__ import annotations

import re

import click

LINES, COLUMNS = 24, 80  # of a screen
MAIN = {  # the most common options
    "fit": ("label", "output", "memory", "group-column", "time-column", "positive-label"),
    "convert": ("label", "drop", "recipe", "format", "split", "memory", "resume"),
    "train": ("output", "label", "C", "loss", "folds", "memory", "validation"),
    "predict": ("output", "answer", "keep", "format", "memory"),
    "explain": ("top", "label", "against", "standard-errors", "output", "json"),
    "evaluate": ("format", "missing-labels", "ignore-extra-features", "memory", "json"),
    "calibrate": ("output", "force", "memory"),
    "report": ("output", "data", "plots"),
    "verify": ("max-passes", "C", "loss", "memory", "json"),
    "export": ("to", "without-recipe", "force"),
}
_ALL = "streamcut.help.all"
_SENTENCE = re.compile(r"(?<=[.;])\s")


def _print_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def help_all() -> click.Option:
    """The option --help-all of every command."""
    return click.Option(
        ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_print_all, hidden=True,
        help="Show all options, and exit.",
    )  # fmt: skip


def is_whole(ctx: click.Context) -> bool:
    """Whether the full help was requested."""
    return bool(ctx.meta.get(_ALL))


class Grouped(click.Option):
    """An option that help lists under the heading `group`."""

    group = ""


class Command(click.Command):
    """`--help` fits on a screen if the command has a line in MAIN; `--help-all` lists options by group, in order of
    appearance, those without a group last."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), help_all()]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        main = MAIN.get(ctx.info_name or "")
        if main is None or is_whole(ctx):
            super().format_help(ctx, formatter)
            return
        formatter.width = min(formatter.width, COLUMNS)
        self.format_usage(ctx, formatter)
        text, _, examples = (self.help or "").partition("Examples:\n")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(" ".join(text.split("\n\n", 1)[0].split()))
        by_name = {opt.lstrip("-"): param for param in self.params if isinstance(param, click.Option) for opt in param.opts}
        records = [_briefly(name, by_name[name]) for name in main]
        with formatter.section("Options that most people need"):
            formatter.write_dl(records)
        ending = f"\nAll {len(self.params)} arguments and options, and more: streamcut {ctx.info_name} --help-all\n"
        room = LINES - formatter.getvalue().count("\n") - ending.count("\n") - 2
        with formatter.section("Examples"):
            for line in examples.split("\n")[: max(room, 1)]:
                formatter.write(f"{line}\n")
        formatter.write(ending)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)) is not None:
                sections.setdefault(parameter.group if isinstance(parameter, Grouped) else "", []).append(record)
        last = sections.pop("")
        for title, records in {**sections, "Output" if sections else "Options": last}.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _briefly(name: str, option: click.Option) -> tuple[str, str]:
    """The option's name, and the first sentence of its help."""
    shown = f"--{name}"
    if not option.is_flag:
        metavar = "SIZE" if name == "memory" else option.metavar
        shown += f" {metavar or ('NAME' if isinstance(option.type, click.Choice) else option.type.name.upper())}"
    return shown, _SENTENCE.split(option.help or "", maxsplit=1)[0].rstrip(".;")
