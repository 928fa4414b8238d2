"""What tests/dask/test_dask_owned.py and tests/inside/dask/test_dask_owned.py share."""

from __future__ import annotations

from functools import partial

import distributed
import pytest
from kit.contracts.runner import make_store
from kit.dask_owned import apart


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("owned") / "rows.zarr")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("apart")
    connected = partial(distributed.Client, set_as_default=False)
    with apart(folder, "none:1:kill", "none:1:kill") as (address, *_), connected(address) as client:
        yield client, folder / "scratch"
