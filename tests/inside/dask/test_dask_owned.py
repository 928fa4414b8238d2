"""Row state that workers own: no folder is common to all, and the bits are those of threads whoever dies."""

from __future__ import annotations

import tempfile
import threading
import tracemalloc
from contextlib import contextmanager
from pathlib import Path

import kit.shared.dask_owned
import pytest
from kit.contracts.runner import ROWS

from inside.kit.contracts.runner import RunnerContract
from inside.kit.dask import runner_on
from streamcut.execution.dask import row_exchange
from streamcut.execution.dask.row_exchange import PIECE
from streamcut.execution.lanes import plan_lanes

dataset = kit.shared.dask_owned.dataset
cluster = kit.shared.dask_owned.cluster


def left_over(dask_worker):
    return len(list(Path(dask_worker.local_directory).glob("streamcut-rows-*")))


class TestOwnedRows(RunnerContract):
    @pytest.fixture
    def make(self, cluster):
        client, scratch = cluster

        @contextmanager
        def make(dataset, lanes, **options):
            with runner_on(client, dataset, lanes, scratch, **options) as runner:
                assert runner._owned is not None
                yield runner
            assert list(scratch.iterdir()) == []
            assert set(client.run(left_over).values()) == {0}

        return make


def test_what_the_client_holds_of_a_checkpoint_does_not_grow_with_the_rows(cluster, dataset):
    """48 MB of row state go through it in pieces, and nothing to its disk."""
    client, scratch = cluster
    size, bound = ROWS * 2000 * 8, 6 * PIECE
    assert bound < size / 1.9
    with runner_on(client, dataset, plan_lanes(dataset.manifest.statistics, 2), scratch) as runner:
        runner.row_state.add("z", shape=(2000,))
        tracemalloc.start()
        try:
            runner.row_state.refill("z", lambda out, part: out.fill(part[0]))
            [array] = runner.row_state.kept().values()
            seen = 0
            for piece in array.pieces():
                seen += len(piece)
                assert [path.name for path in runner._folder.iterdir()] == ["lock"]
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert seen == size
        assert peak < bound
        assert {len(names) for names in client.run(row_exchange.files_of, runner._run).values()} == {2}


def test_pieces_come_from_whoever_has_them(cluster, dataset):
    """One of two workers has lost its files while a checkpoint is written."""
    client, scratch = cluster
    with runner_on(client, dataset, plan_lanes(dataset.manifest.statistics, 2), scratch) as runner:
        runner.row_state.add("z", shape=(1500,))
        runner.row_state.refill("z", lambda out, part: out.fill(part[0]))
        [array] = runner.row_state.kept().values()
        expected = b"".join(array.pieces())
        pieces = array.pieces()
        seen = [next(pieces)]
        first = runner.row_state.files.holders["z", 0][0]
        client.run(remove_files, runner._run, workers=[first])
        assert b"".join([*seen, *pieces]) == expected


def remove_files(run):
    for name in row_exchange.files_of(run):
        (row_exchange._folders[run] / name).unlink()


def test_a_task_and_a_request_that_come_first_together_share_a_folder(tmp_path, monkeypatch):
    """The request comes while the task makes the folder."""
    made, request = tempfile.mkdtemp, threading.Thread(target=row_exchange.folder_of, args=("a run", str(tmp_path)))

    def make(**where):
        if request.ident is None:
            request.start()
            request.join(0.2)
        return made(**where)

    monkeypatch.setattr("tempfile.mkdtemp", make)
    found = row_exchange.folder_of("a run", str(tmp_path))
    request.join()
    assert list(tmp_path.iterdir()) == [found]
    row_exchange.forget("a run")
    assert list(tmp_path.iterdir()) == []
