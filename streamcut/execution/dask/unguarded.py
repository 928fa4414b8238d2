"""Scripts that train outside `if __name__ == "__main__":`, when local-cluster starts processes that import them."""

from __future__ import annotations

import multiprocessing

UNGUARDED = (
    "local-cluster starts processes that run a Python script again up to where it trains: put the script's code below "
    'if __name__ == "__main__":, or give the address of a running cluster'
)


def refuse_to_train_again() -> None:
    """End a process that would start a cluster while still starting up itself: it has run its parent's script.

    By SystemExit: any other exception during start-up prints a traceback.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(UNGUARDED)
