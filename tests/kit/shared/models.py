"""What tests/models/test_models.py and tests/inside/models/test_models.py share."""

from __future__ import annotations

import pytest


class Bomb:
    def __reduce__(self):
        return pytest.fail, ("unpickled",)
