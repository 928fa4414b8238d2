"""How fast svmlight text becomes CSR arrays: streamcut on one and two threads against scikit-learn and svmloader.

    python scripts/benchmarks/bench_parse.py [--data DIR] [--megabytes 100] [--rounds 5]

Texts: the real sets a9a (every value 1) and reuters_moneyfx (15 digits), repeated up to the size, and synthetic rows with values
of 7 and of 17 digits. Every round runs all readers in turn, so that other load on the machine hits all alike; quoted are medians
and, what counts, ratios. All end with CSR arrays: those of streamcut block by block as float32, those of the others as a whole.
"""

from __future__ import annotations

import argparse
import lzma
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file
from svmloader import load_svmfile

from streamcut.io.text.svmlight import SvmlightSource


def repeated(path: Path, size: int) -> bytes:
    text = lzma.decompress(path.read_bytes())
    return text * -(-size // len(text))


def synthetic(digits: int, size: int) -> bytes:
    """Rows of 60 features of 100,000, values normal with `digits` significant digits."""
    generator = np.random.default_rng(0)
    lines = []
    for _ in range(2000):
        indices = np.unique(generator.integers(1, 100_001, 60))
        values = generator.normal(size=len(indices))
        lines.append("1 " + " ".join(f"{j}:{v:.{digits}g}" for j, v in zip(indices, values, strict=True)) + "\n")
    text = "".join(lines).encode()
    return text * -(-size // len(text))


def read_blocks(path: str, threads: int) -> None:
    for _ in SvmlightSource([path], threads=threads).blocks():
        pass


READERS: dict[str, Callable[[str], object]] = {
    "scikit-learn": lambda path: load_svmlight_file(path, dtype=np.float32, zero_based=False),
    "svmloader": lambda path: load_svmfile(path, dtype="f", ltype="d", zero_based=False),
    "streamcut, 1 thread": lambda path: read_blocks(path, 1),
    "streamcut, 2 threads": lambda path: read_blocks(path, 2),
}


def measure(path: str, rounds: int) -> dict[str, float]:
    """Median seconds of each reader."""
    seconds: dict[str, list[float]] = {name: [] for name in READERS}
    for _ in range(rounds):
        for name, read in READERS.items():
            start = time.perf_counter()
            read(path)
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("STREAMCUT_DATA", "../shared/data")))
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    size = options.megabytes * 10**6
    texts: dict[str, Callable[[], bytes]] = {
        "a9a": lambda: repeated(options.data / "a9a" / "train.svm.xz", size),
        "reuters_moneyfx": lambda: repeated(options.data / "reuters_moneyfx" / "train.svm.xz", size),
        "7 digits": lambda: synthetic(7, size),
        "17 digits": lambda: synthetic(17, size),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "text.svm")
        start = time.perf_counter()
        Path(path).write_text("1 1:1\n")
        read_blocks(path, 1)
        print(f"first block, with compiling or loading the kernel: {time.perf_counter() - start:.1f} s\n")
        print(f"{'text':16} {'reader':21} {'MB/s':>6} {'× scikit-learn':>15} {'× svmloader':>12} {'× 1 thread':>11}")
        for text, make in texts.items():
            Path(path).write_bytes(make())
            bytes_read = os.path.getsize(path)
            seconds = measure(path, options.rounds)
            for name, time_taken in seconds.items():
                ratios = [seconds[other] / time_taken for other in ("scikit-learn", "svmloader", "streamcut, 1 thread")]
                rate = bytes_read / time_taken / 1e6
                print(f"{text:16} {name:21} {rate:6.0f} {ratios[0]:15.1f} {ratios[1]:12.1f} {ratios[2]:11.2f}", flush=True)


if __name__ == "__main__":
    main()
