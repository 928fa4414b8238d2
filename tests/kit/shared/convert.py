"""What tests/io/test_convert.py and tests/inside/io/test_convert.py share."""

import os
from pathlib import Path

import pytest
from reference.rows import make_rows


@pytest.fixture(scope="module")
def rows():
    return make_rows(500, 1)


@pytest.fixture(scope="module")
def groups():
    return make_rows(500, 2, groups=7)


def leftovers(folder: Path) -> list[str]:
    """What a conversion should not leave behind."""
    return [name for name in os.listdir(folder) if name.endswith((".partial", ".tmp", ".replaced", ".scratch"))]
