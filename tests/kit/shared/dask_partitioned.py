"""What tests/dask/test_dask_partitioned.py and tests/inside/dask/test_dask_partitioned.py share."""

from __future__ import annotations

import pytest
from kit.contracts.runner import make_store


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("partitioned") / "rows.zarr")
