"""The experiments of the five papers in pieces: one training of many hours, or a few of minutes, each with a record of its own.

A piece is a folder OUT/<paper>/<piece> with what its script wrote and a log. The script writes to OUT/unfinished, and the folder
is moved when the script has ended well: a piece is there whole or not at all, whenever the run is killed.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
SCRIPTS = {
    "svm-perf": "reproduce_svm_perf.py", "ocas": "reproduce_ocas.py", "sampled-cuts": "reproduce_sampled_cuts.py",
    "bsca": "reproduce_bsca.py", "sbp": "reproduce_sbp.py",
}  # fmt: skip
SPENT = "spent.json"  # of a piece: processor and clock seconds
STORED = "stored"  # of OUT: kernel values that pieces share


class Piece(NamedTuple):
    """What one folder holds: the arguments of the script that fills it."""

    paper: str
    name: str
    arguments: tuple[str, ...]

    def done(self, out: Path) -> bool:
        """Whether its folder is there."""
        return (out / self.paper / self.name).is_dir()


def _piece(paper: str, *arguments: str, of: str = "") -> Piece:
    """Named by its arguments, or `of` them."""
    name = re.sub(r"[^\w.]+", "-", of or " ".join(each for each in arguments if not each.startswith("--")))
    return Piece(paper, name, arguments)


def whole() -> list[Piece]:
    """Everything at the papers' sizes, what matters most first."""
    return list(_whole())


def _whole() -> Iterator[Piece]:
    curves = ("sbp", "pegasos", "sdca", "perceptron")
    for data, seeds in (("reuters_moneyfx", range(10)), ("a9a", range(5)), ("mnist", range(3))):
        yield _piece("sbp", "curves", "--data", data, "--methods", "smo")
        for seed in seeds:
            for method in curves:
                yield _piece("sbp", "curves", "--data", data, "--methods", method, "--seed", str(seed))
    for data in ("a9a", "ijcnn1", "skin_nonskin", "covtype_20k", "susy_30k"):
        for seed in range(5):
            yield _piece("bsca", "seeds", "--data", data, "--seed", str(seed))
        for part in ("unlimited", "merging", "full"):
            yield _piece("bsca", part, "--data", data)
    for data, sizes in (("checkers", (400, 1000)), ("adult", (400, 1000)), ("covertype", (400, 1000))):
        peer = ("table", "--data", data, "--methods", "LIBSVM", "--max-rows-libsvm", "1e6")
        yield _piece("sampled-cuts", *peer, of=f"table {data} LIBSVM")
        for method in ("sampled-constant", "sampled-linear", "Nyström"):
            for r in sizes if method != "Nyström" else (250,) if data == "checkers" else (250, 500):
                for seed in range(3 if method != "Nyström" else 1):
                    yield _piece(
                        "sampled-cuts", "table", "--data", data, "--methods", method, "--sizes", str(r), "--seed", str(seed)
                    )
    yield from (_piece("sampled-cuts", "rows", "--data", data, "--plot") for data in ("checkers", "covertype"))
    for cost in ("0.01", "0.1", "1", "10", "100"):
        yield _piece("sampled-cuts", "samples", "--costs", cost, "--limit", "600", of=f"samples {cost}")
    for part in ("table1", "rows", "epsilon", "C"):
        for data in ("a9a", "reuters_moneyfx", "reuters21578", "covtype_20k", "ijcnn1"):
            yield _piece("svm-perf", part, "--data", data, "--plot")
    yield _piece("svm-perf", "rows", "--data", "flights3m", "--plot")
    yield _piece("svm-perf", "ordinal", "--data", "a9a")
    for part in ("table3", "figure1", "figure2", "table2"):
        for data in ("reuters_moneyfx", "reuters21578", "covtype_20k", "mnist", "artificial"):
            yield _piece("ocas", part, "--data", data, "--plot")
    yield _piece("ocas", "table2", "--data", "flights3m")
    yield from (_piece("ocas", part, "--data", "celegans_splice", "--plot") for part in ("figure3", "table4", "table2"))
    for data in ("reuters_moneyfx", "a9a", "mnist"):
        yield _piece("sbp", "fourier", "--data", data, "--runs", "3", "--pairs", "512" if data != "mnist" else "256")
    for part in ("bias", "smo"):
        for data in ("a9a", "mnist") if part == "bias" else ("a9a", "reuters_moneyfx", "dna", "mnist", "ijcnn1"):
            yield _piece("sbp", part, "--data", data)


def quick() -> list[Piece]:
    """Small samples: about ten minutes in all."""
    return [
        _piece("sbp", "curves", "--quick", "--plot", "--data", "a9a,reuters_moneyfx"),
        _piece("sbp", "fourier", "--quick", "--data", "a9a,reuters_moneyfx"),
        _piece("sbp", "smo", "--quick", "--data", "a9a,reuters_moneyfx"),
        _piece("bsca", "--quick", "--data", "a9a", of="quick a9a"),
        _piece("bsca", "--quick", "--data", "ijcnn1", of="quick ijcnn1"),
        *(_piece("sampled-cuts", part, "--quick", "--plot", "--limit", "60") for part in ("rows", "samples", "table")),
        *(_piece("svm-perf", part, "--quick", "--plot") for part in ("table1", "rows", "epsilon", "C")),
        *(_piece("ocas", p, "--quick", "--plot") for p in ("table2", "figure1", "figure2", "table3", "figure3", "table4")),
    ]


def run(piece: Piece, out: Path) -> None:
    """Runs the script of a piece; ends this process when it fails, with the place of its log."""
    unfinished, done = out / "unfinished" / f"{piece.paper} {piece.name} {os.getpid()}", out / piece.paper / piece.name
    for left in (out / "unfinished").glob(f"{piece.paper} {piece.name} *"):  # by a run that was killed; its script may go on
        shutil.rmtree(left, ignore_errors=True)
    unfinished.mkdir(parents=True)
    command = [sys.executable, str(HERE / SCRIPTS[piece.paper]), "--out", str(unfinished), *piece.arguments]
    if piece.paper == "sbp":
        command += ["--stored", str(out / STORED)]
    before, started = _processor(), time.monotonic()
    with open(unfinished / "log.txt", "w") as log:
        child = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            status = child.wait()
        except BaseException:
            child.send_signal(signal.SIGTERM)
            child.wait()
            raise
    if status:
        sys.exit(f"{' '.join(command)} ended with {status}; see {unfinished / 'log.txt'}")
    spent = {"processor": _processor() - before, "clock": time.monotonic() - started}
    (unfinished / SPENT).write_text(json.dumps(spent) + "\n")
    done.parent.mkdir(parents=True, exist_ok=True)
    os.replace(unfinished, done)


def _processor() -> float:
    """Seconds of processor time of all children so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def told(out: Path) -> list[tuple[str, int, int, float]]:
    """(paper, pieces there are, of how many in full, processor hours of those that tell) of what a folder holds."""
    lines = []
    for paper in SCRIPTS:
        folders = [path for path in (out / paper).glob("*") if path.is_dir()]
        spent = [json.loads((path / SPENT).read_text())["processor"] for path in folders if (path / SPENT).is_file()]
        lines.append((paper, len(folders), sum(piece.paper == paper for piece in whole()), sum(spent) / 3600.0))
    return lines


def run_all(pieces: list[Piece], out: Path, *, budget: float | None) -> int:
    """Runs the pieces that are not there, one after another; begins none after `budget` minutes. Returns how many are left."""
    started = time.monotonic()
    waiting = [piece for piece in pieces if not piece.done(out)]
    for number, piece in enumerate(waiting):
        if budget is not None and time.monotonic() - started > 60.0 * budget:
            print(f"{budget:g} minutes are spent", flush=True)
            return len(waiting) - number
        before = time.monotonic()
        run(piece, out)
        print(f"{piece.paper} {piece.name}: {time.monotonic() - before:.0f} s, {len(waiting) - number - 1} to do", flush=True)
    return 0
