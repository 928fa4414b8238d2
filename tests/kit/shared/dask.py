"""What tests/dask/test_dask.py and tests/inside/dask/test_dask.py share."""

from __future__ import annotations

import pytest
from kit import clusters
from kit.contracts.runner import make_store


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("dask") / "rows.zarr")


@pytest.fixture(scope="module")
def client():
    with clusters.two_workers() as client:
        yield client
