"""Ways into the package, and what they say when something ends early."""

from __future__ import annotations

import importlib


def test_importing_the_main_module_runs_nothing():
    importlib.reload(importlib.import_module("streamcut.__main__"))
