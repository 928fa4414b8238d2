"""Stores of the rows, each written once a session."""

from __future__ import annotations

from functools import cache

import pytest
from laws.problems import ROWS


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """`store(name, **options of streamcut.create)` → the path of a store of ROWS[name]."""
    folder = tmp_path_factory.mktemp("stores")

    @cache
    def store(name: str, **options) -> str:
        return ROWS[name].store(folder / "-".join(map(str, (name, *options.values()))), **options)

    return store
