"""Connecting to a Dask cluster, or starting one on this machine."""

from __future__ import annotations

import logging
import multiprocessing
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import dask
import distributed

from streamcut.errors import ClusterLostError, StreamcutError, UsageError
from streamcut.execution.cluster import Cluster

LOCAL = "local-cluster"
_LIBRARIES = "distributed", "distributed.client", "tornado", "tornado.application", "asyncio"
_PRELOAD = "distributed.worker.preload"
_UNGUARDED = (
    "local-cluster starts processes that run a Python script again up to where it trains: put the script's code below "
    'if __name__ == "__main__":, or give the address of a running cluster'
)


@contextmanager
def connect(scheduler: str | distributed.Client, *, workers: int) -> Iterator[Cluster]:
    """The cluster `scheduler`: an address, the path of a scheduler file, a client (which stays open), or "local-cluster".

    A local cluster has `workers` processes. TLS is Dask's: a client brings its own; a tls:// address uses Dask's configuration
    (distributed.comm.tls). Raises ClusterLostError without an answer, UsageError for a script that trains again in the
    processes of a local cluster.
    """
    config: dict[str, object] = {"distributed.admin.large-graph-warning-threshold": "1PB"}
    if scheduler == LOCAL:
        # Dask looks at the threads of profiled workers every 10 ms, and under Python 3.11 a garbage collection in the middle of
        # that can stop the process for ever (CPython issue 106883).
        config |= {"distributed.worker.profile.enabled": False, _PRELOAD: [*dask.config.get(_PRELOAD, []), __name__]}
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(config))
        if isinstance(scheduler, distributed.Client):
            client = scheduler
        else:
            for logger in map(logging.getLogger, _LIBRARIES):  # what follows from their tracebacks is reported in a sentence
                stack.callback(logger.setLevel, logger.level)
                logger.setLevel(logging.CRITICAL)
            client = stack.enter_context(_client(scheduler, workers, stack))
        yield Cluster(client, local=scheduler == LOCAL)


def _client(scheduler: str, workers: int, stack: ExitStack) -> distributed.Client:
    options: dict[str, int] = {"timeout": 10, "set_as_default": False}
    if getattr(multiprocessing.current_process(), "_inheriting", False) and scheduler == LOCAL:
        raise SystemExit(_UNGUARDED)  # it has run its parent's script; any other exception would print a traceback
    if scheduler.startswith("tls://") and distributed.Security().get_connection_args("client").get("ssl_context") is None:
        raise UsageError(  # Dask would raise TypeError
            f"--scheduler: {scheduler}: TLS needs certificates: set distributed.comm.tls.ca-file, client.cert and client.key in "
            "Dask's configuration (or DASK_DISTRIBUTED__COMM__TLS__CA_FILE, …)"
        )
    try:
        if scheduler == LOCAL:  # with the plan's limits instead of Dask's, and a dashboard that the network does not see
            quiet: dict[str, str | int] = {
                "silence_logs": logging.CRITICAL,
                "dashboard_address": "127.0.0.1:0",
                "memory_limit": 0,
            }
            server = stack.enter_context(distributed.LocalCluster(n_workers=workers, threads_per_worker=1, **quiet))
            return distributed.Client(server, direct_to_workers=True, **options)
        if "://" in scheduler:
            return distributed.Client(scheduler, **options)
        if not Path(scheduler).exists():  # Dask would wait for it
            raise OSError("no such file")
        return distributed.Client(scheduler_file=scheduler, **options)
    except RuntimeError as error:
        problem = f"--scheduler: {scheduler}: its processes did not start ({error})"
        if StreamcutError.on_command_line:  # no script of the user's is run again
            more = "something ended one, or memory was short: try again, with fewer --workers"
            raise ClusterLostError(f"{problem}; {more}") from None
        raise UsageError(f"{problem}. {_UNGUARDED}") from None
    except (OSError, ValueError, KeyError) as error:
        problem = f"--scheduler: {scheduler}: no Dask scheduler there ({error}); start one, then try again"
        raise ClusterLostError(problem) from None


def dask_setup(worker: object) -> None:
    """Called by Dask in each of our own workers when it starts: Ctrl-C and errors are for the client to handle and to tell."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(logging.CRITICAL)
