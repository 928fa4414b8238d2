"""Commands of soak.py as processes, and what happens to them."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TIMEOUT = 600  # seconds of `clock`; after these it hangs
KILLED = {-signal.SIGKILL}
SIGNALS = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM, "SIGHUP": signal.SIGHUP, "SIGKILL": signal.SIGKILL}


class ViolationError(Exception):
    """Something that must hold does not."""


class Clock:
    """Counts seconds, and stands still while the soak itself is stopped (SIGSTOP), so that others can have the machine."""

    def __init__(self) -> None:
        self._seconds = 0
        threading.Thread(target=self._count, daemon=True).start()

    def __call__(self) -> int:
        return self._seconds

    def _count(self) -> None:
        while True:
            time.sleep(1.0)
            self._seconds += 1


clock = Clock()


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Accident:
    """kind: signal, failpoint, file size, changed source; `detail` says which, `after` so many seconds of the clock."""

    kind: str
    detail: str
    after: float = 0.0
    path: Path | None = None

    @property
    def kills(self) -> bool:
        return self.detail.endswith(("SIGKILL", ":kill"))

    def __str__(self) -> str:
        return f"{self.kind} {self.detail} after {self.after:.2f} s" if self.after else f"{self.kind} {self.detail}"


def accident(chance: random.Random, points: list[str], folder: Path | None, source: Path | None = None) -> Accident | None:
    """What will happen to a command that visits the failpoints `points`; None every third time."""
    kinds = ["none", "none", "signal", "failpoint", "failpoint", "file size"] + ["changed source"] * (source is not None)
    kind = chance.choice(kinds)
    after = chance.uniform(0.3, 3.0)
    if kind == "signal":
        return Accident(kind, chance.choice([*SIGNALS, "SIGKILL"]), after)
    if kind == "failpoint":
        return Accident(kind, f"{chance.choice(points)}:{chance.choice(['kill', 'kill', 'ENOSPC', 'EIO'])}")
    if kind == "file size":
        return Accident(kind, str(chance.choice([0, 100, 3000, 20_000])))
    if kind == "changed source" and folder is not None:
        return Accident(kind, chance.choice(["append", "truncate", "replace"]), after, source)
    return None


def run(arguments: list[str], what: Accident | None, folder: Path) -> Outcome:
    """`streamcut ARGUMENTS` in `folder`; raises ViolationError when it hangs."""
    environment = dict(os.environ)
    if what is not None and what.kind == "failpoint":
        environment["STREAMCUT_FAILPOINT"] = what.detail
    process = _start(arguments, environment, folder, what)
    if what is not None and what.kind in ("signal", "changed source"):
        threading.Thread(target=_happens, args=(process, what), daemon=True).start()
    return _end(process, arguments)


def run_two(one: list[str], other: list[str], folder: Path) -> list[Outcome]:
    """Two commands at once."""
    processes = [_start(arguments, dict(os.environ), folder, None) for arguments in (one, other)]
    return [_end(process, one) for process in processes]


def _start(arguments: list[str], environment: dict[str, str], folder: Path, what: Accident | None) -> subprocess.Popen:
    def limit() -> None:
        os.setsid()
        if what is not None and what.kind == "file size":
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(what.detail), int(what.detail)))

    return subprocess.Popen(
        [sys.executable, "-m", "streamcut", *arguments],
        env={**environment, "PYTHONFAULTHANDLER": "1"},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=limit,
    )


def _end(process: subprocess.Popen, arguments: list[str]) -> Outcome:
    end = clock() + TIMEOUT
    while clock() < end:
        with suppress(subprocess.TimeoutExpired):
            out, err = process.communicate(timeout=5.0)
            return Outcome(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))
    process.send_signal(signal.SIGABRT)  # it shows where its threads are
    with suppress(subprocess.TimeoutExpired):
        err = process.communicate(timeout=30.0)[1]
        what = f"did not end within {TIMEOUT} seconds:\n{err.decode(errors='replace')}"
        raise ViolationError(f"streamcut {' '.join(arguments)} {what}")
    os.killpg(process.pid, signal.SIGKILL)
    raise ViolationError(f"streamcut {' '.join(arguments)} did not end within {TIMEOUT} seconds, and after SIGABRT neither")


def _happens(process: subprocess.Popen, what: Accident) -> None:
    """A signal to the process, or a change of its source, after a while."""
    time.sleep(what.after)
    if process.poll() is not None:
        return
    if what.kind == "signal":
        process.send_signal(SIGNALS[what.detail])
        return
    assert what.path is not None
    content = what.path.read_bytes()
    if what.detail == "append":
        with open(what.path, "ab") as file:
            file.write(content[-200:])
    elif what.detail == "truncate":
        os.truncate(what.path, len(content) // 2)
    else:
        what.path.with_suffix(".new").write_bytes(content[: len(content) // 2])
        os.replace(what.path.with_suffix(".new"), what.path)
