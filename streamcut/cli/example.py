"""streamcut example"""

from __future__ import annotations

import click

from streamcut.cli.destinations import refuse_existing
from streamcut.cli.help import Command
from streamcut.cli.output import note
from streamcut.cli.parameters import Choice, force_option, quiet_option

NAMES = ["clicks", "posts", "cells", "tumours", "tumours-test", "digits"]


@click.command(cls=Command)
@click.argument("name", type=Choice(NAMES), metavar="NAME")
@click.argument("path", metavar="[FILE]", required=False)
@force_option
@quiet_option
def command(name: str, path: str | None, force: bool, quiet: bool) -> None:
    """Write the example data NAME to FILE, to try things on; without FILE, under its own name in this folder.

    \b
    clicks        4,000 views of advertisements by time (CSV, made up)
    posts         1,500 posts on three topics (CSV, made up)
    cells         900 cells of three types (.h5ad, made up; needs anndata)
    tumours       426 breast tumours, 1 benign, -1 malignant (svmlight, real)
    tumours-test  143 more of them
    digits        1,797 images of digits (svmlight, real)

    \b
    Examples:
      streamcut example clicks
      streamcut example tumours train.svm
    """
    from streamcut.example import EXAMPLES

    write, usual = EXAMPLES[name]
    place = path or usual
    refuse_existing(place, "FILE", force)
    write(place)
    if not quiet:
        note(f"Written to {place}.")
