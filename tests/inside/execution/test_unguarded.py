"""A script that trains on local-cluster outside `if __name__ == "__main__":` is told so: each process that it starts runs it."""

import multiprocessing

import pytest

from streamcut.execution.dask.cluster import refuse_to_train_again

pytestmark = pytest.mark.process


def test_a_process_that_is_being_started_refuses(monkeypatch):
    refuse_to_train_again()  # this one may
    monkeypatch.setattr(multiprocessing.current_process(), "_inheriting", True, raising=False)
    with pytest.raises(SystemExit, match="local-cluster starts processes"):
        refuse_to_train_again()
