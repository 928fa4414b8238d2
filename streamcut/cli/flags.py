"""streamcut flags"""

from __future__ import annotations

import shlex

import click

from streamcut.cli.help import Command
from streamcut.cli.output import note, print_json
from streamcut.cli.parameters import Choice, json_option
from streamcut.flags import TOOLS, tool_of, translate
from streamcut.foundation.shown import visible


# No short options, and unknown ones are accepted: they are the text to translate.
@click.command(
    cls=Command,
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
)
@click.option(
    "--from",
    "tool",
    type=Choice(list(TOOLS)),
    help="The program whose options TEXT has. Default: the one it begins with.",
)
@click.option("--rows", type=int, help="Rows in the data, for programs whose C depends on them (svm_*, vw, SGDClassifier).")
@click.option("--positives", type=int, help="Positive rows, for svm_perf -l 4 and -l 5, and balanced classes.")
@click.option("--queries", type=int, help="Queries or sequences, for svm_rank and svm_hmm.")
@click.option("--pairs", type=int, help="Pairs of rows of a query with different labels, for svm_rank -l 1.")
@click.option("--paired-queries", type=int, help="Queries that have such a pair, for svm_rank -l 2.")
@click.option("--classes", type=int, help="Classes in the data, if more than two: programs treat them differently.")
@click.option("--features", type=int, help="Features in the data, for LIBSVM without -g.")
@json_option
@click.argument("text", nargs=-1, required=True)
def command(tool: str | None, as_json: bool, text: tuple[str, ...], **counts: int | None) -> None:
    """Translate TEXT, a command line or options of another program, into a command of ours for the same problem.

    With the name of the data it is a whole command; with options alone, options of `streamcut train`. What has no counterpart
    is refused by name, with the command that does it. What only differs in the way to the solution is said on stderr.

    \b
    Examples:
      streamcut flags "train -s 3 -c 1 -B 1 train.svm m.model"
      streamcut flags "vw -d a.vw --loss_function logistic --bfgs --l2 1"
      streamcut flags 'LinearSVC(loss="hinge", C=0.1)'
      streamcut flags --from liblinear "-s 0 -c 1" --classes 10
      streamcut flags --from libsvm "-t 2 -g 0.5 -c 10"
      streamcut flags --from svm_perf "-l 10 -c 20" --rows 32561
      streamcut flags --from svm_rank "-c 20" --rows 500 --queries 10 --pairs 4000
      streamcut flags --from vw "--loss_function hinge --l2 1e-6" --rows 1000000
    """
    line = text[0] if len(text) == 1 else shlex.join(text)
    found = translate(tool or tool_of(line), line, **counts)
    ours = found.text()
    if as_json:
        files = {"command": found.command, "data": found.data, "model": found.model}
        print_json({"options": found.options, **files, "text": ours, "notes": found.notes})
        return
    click.echo(visible(ours))
    for remark in found.notes:
        note(f"note: {remark}")
