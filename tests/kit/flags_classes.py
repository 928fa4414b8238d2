"""Rows of several classes."""

from __future__ import annotations

from streamcut.config import TrainOptions
from streamcut.flags import translate


def several(tool, text, **counts):
    """Our options, as far as `train` takes them."""
    found = translate(tool, text, **counts).options
    given = {name.lstrip("-").replace("-", "_"): value for name, value in found.items() if value}
    numbers = {name: float(value) if name in ("C", "l1", "l1_only", "bias") else value for name, value in given.items()}
    TrainOptions(**numbers)
    return numbers
