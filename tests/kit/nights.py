"""Variants of a test that are left to the runs of every night (`pytest -m ""`)."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def by_night(values: Iterable[Any], nightly: Collection[Any]) -> list[Any]:
    """`values` as parameters; those of `nightly` are marked `long`."""
    return [pytest.param(value, marks=[pytest.mark.long] if value in nightly else []) for value in values]
