"""Scripts whose training is not below `if __name__ == "__main__":`, when local-cluster starts processes that import them."""

from __future__ import annotations

import multiprocessing

UNGUARDED = (
    "local-cluster starts processes that run a Python script again up to where it trains: put what the script does below "
    'if __name__ == "__main__":, or give the address of a cluster that is there'
)


def refuse_to_train_again() -> None:
    """End a process that is about to start a cluster while it is being started itself: it has run the script of its parent.

    By SystemExit: it is no process yet, and all else ends with a traceback.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(UNGUARDED)
