"""streamcut export"""

from __future__ import annotations

import click

from streamcut.cli.destinations import refuse_existing
from streamcut.cli.help import Command
from streamcut.cli.parameters import Choice, force_option, memory_option
from streamcut.exports.targets import TARGETS


def _listed() -> str:
    rows = [(name, " ".join(target.endings) or "other endings", target.what) for name, target in TARGETS.items()]
    return "\n".join(f"{name:<11} {endings:<14} {what}" for name, endings, what in rows)


_HELP = f"""Write MODEL to FILE for another program, which then gives the same labels and scores. What that program cannot hold is
refused, not left out: export it to another, or say what to leave out.

\b
{_listed()}

\b
Examples:
  streamcut export m.npz m.liblinear
  streamcut export m.npz m.onnx
"""


@click.command(cls=Command, help=_HELP)
@click.argument("model")
@click.argument("output", metavar="FILE")
@click.option("--to", "target", type=Choice(list(TARGETS)), help="The program to write for.  [default: by the ending of FILE]")
@click.option("--without-recipe", is_flag=True, help="Leave out how raw rows become features, if the program cannot hold it.")
@click.option("--without-probabilities", is_flag=True, help="Leave out the probabilities of the model.")
@memory_option
@force_option
def command(
    model: str, output: str, target: str | None, without_recipe: bool, without_probabilities: bool, memory: str, force: bool
) -> None:
    refuse_existing(output, "FILE", force, reads=[model])

    from streamcut.exports.export import export

    dropped = {"without_recipe": without_recipe, "without_probabilities": without_probabilities}
    export(model, output, to=target, replace=force, memory=memory, **dropped)
