"""streamcut example"""

from __future__ import annotations

from streamcut.cli.destinations import refuse_existing
from streamcut.cli.output import note
from streamcut.errors import UsageError
from streamcut.foundation.shown import unknown

NAMES = ("clicks", "posts", "cells", "tumours", "tumours-test", "digits")


def run(name: str, file: str | None = None, *, force: bool = False, quiet: bool = False) -> None:
    """Write the example data NAME to FILE, to try things on; without FILE, under its own name in this folder.

    \b
    clicks        4,000 views of advertisements by time (CSV, made up)
    posts         1,500 posts on three topics (CSV, made up)
    cells         900 cells of three types (.h5ad, made up; needs anndata)
    tumours       426 breast tumours, 1 benign, -1 malignant (svmlight, real)
    tumours-test  143 more of them
    digits        1,797 images of digits (svmlight, real)

    In a shell:
      streamcut example clicks
      streamcut example tumours train.svm
    """
    if name not in NAMES:
        raise UsageError(f"NAME: {unknown(name, NAMES)}")
    from streamcut.example import EXAMPLES

    write, usual = EXAMPLES[name]
    place = file or usual
    refuse_existing(place, "FILE", force)
    write(place)
    if not quiet:
        note(f"Written to {place}.")
