"""The peak memory of a conversion stays below --memory, whatever the size of the data and of its lines, and in every order."""

import json
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kit.first_runs import within

from streamcut.foundation.units import parse_size
from streamcut.io.tables.files import BatchSize, ParquetTable

pytestmark = pytest.mark.process

BUDGET = 330 * 10**6
SCRIPT = """
import json, sys
from streamcut.io.conversion.convert import convert
convert(sys.argv[1], sys.argv[2], memory=int(sys.argv[3]), force=True, **json.loads(sys.argv[4]))
print([int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")][0])
"""


def peak(source, output, options) -> int:
    """VmHWM in bytes of a fresh process that converts `source`."""
    command = [sys.executable, "-P", "-c", SCRIPT, str(source), str(output), str(BUDGET), json.dumps(options)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr
    return int(found.stdout)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """{name: file}; the first is four times as large as the budget leaves for the work."""
    folder = tmp_path_factory.mktemp("text")
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(5000):
        entries = np.unique(rng.integers(1, 10**6, 15))
        lines.append(
            f"{rng.integers(0, 2)} " + " ".join(f"{j}:{v:.4g}" for j, v in zip(entries, rng.normal(size=15), strict=False)) + "\n"
        )
    block = "".join(lines).encode()
    contents = {
        "usual": (block, 300 * 10**6),
        "labels only": (b"1\n" * 500_000, 30 * 10**6),
        "long lines": (b"1 " + b" ".join(b"%d:1" % j for j in range(1, 60_000)) + b"\n", 60 * 10**6),
    }
    files = {}
    for name, (piece, size) in contents.items():
        files[name] = folder / f"{name}.svm"
        with open(files[name], "wb") as file:
            for _ in range(size // len(piece)):
                file.write(piece)
    return files


@pytest.mark.thirds
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("usual", {}),
        ("usual", {"shuffle": 1}),
        pytest.param("usual", {"shuffle": 1, "split": 0.9, "backend": "hdf5"}, marks=pytest.mark.long),
        ("labels only", {}),
        pytest.param("labels only", {"shuffle": 1}, marks=pytest.mark.long),
        ("long lines", {}),
        ("long lines", {"shuffle": 1}),
    ],
)
def test_peak_memory_stays_below_the_limit(texts, tmp_path, name, options):
    used = within(BUDGET, lambda: peak(texts[name], tmp_path / "a.zarr", options), int)
    assert used <= BUDGET, f"{used / 1e6:.0f} MB"
    print(f"{name} {options}: {used / 1e6:.0f} MB")


def strings(path, count=20_000):
    """A Parquet column of `count` different strings of 1 kB, each twice."""
    words = pa.array([f"{number:08d}" + 992 * "x" for number in range(count)])
    url = words.take(pa.array(np.arange(2 * count) % count))
    pq.write_table(pa.table({"label": pa.array(np.arange(2 * count) % 2), "url": url}), path)


def one_page(path, count=200_000):
    """A Parquet column of `count` different keys in one page and one dictionary."""
    users = pa.array([f"user{number:012d}" for number in range(count)])
    table = pa.table({"label": pa.array(np.arange(count) % 2), "user": users})
    pq.write_table(table, path, data_page_size=1 << 30, dictionary_pagesize_limit=1 << 30, write_batch_size=count)


def columns(path, count=3000):
    names = ",".join(f"c{number}" for number in range(count))
    rows = "".join(f"{row % 2},{','.join(str(row % 30 + number) for number in range(count))}\n" for row in range(120))
    path.write_text(f"label,{names}\n{rows}")


def converted(source, output, memory, options):
    """(exit code, VmHWM or 0, what was said) of a fresh process that converts `source`."""
    command = [sys.executable, "-P", "-c", SCRIPT, str(source), str(output), str(memory), json.dumps(options)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return found.returncode, int(found.stdout or 0), found.stderr


@pytest.mark.thirds
@pytest.mark.parametrize(
    ("make", "suffix", "options"),
    [
        (one_page, "parquet", {"categorical": "user", "hash_bits": 18}),
        (columns, "csv", {}),
    ],
    ids=["one-page", "columns"],
)
def test_row_72_the_memory_that_a_refusal_names_is_enough(tmp_path, make, suffix, options):
    source, memory = tmp_path / f"a.{suffix}", 10**6
    make(source)
    for _ in range(4):
        code, peak, said = converted(source, tmp_path / "a.zarr", memory, {"labels": "label", **options})
        if code == 0:
            again = {"labels": "label", **options}
            code, peak, said = converted(source, tmp_path / "a.zarr", memory, again)  # the first may have compiled kernels
            break
        named = re.findall(r"(?:at least |raise it to memory=')([\d.]+ ?[kMG]B)", said)
        assert "MemoryBudgetError" in said
        assert named, said
        assert parse_size(named[-1]) > memory
        memory = parse_size(named[-1])
    assert code == 0
    assert 0 < peak <= memory, f"{peak / 1e6:.0f} of {memory / 1e6:.0f} MB"


def test_row_72_batches_together_are_as_large_as_the_file(tmp_path):
    for make, column in ((strings, "url"), (one_page, "user")):
        make(tmp_path / "a.parquet")
        table = ParquetTable(str(tmp_path / "a.parquet"))
        wanted = pa.schema([pa.field(column, pa.dictionary(pa.int32(), pa.string()))])
        batches = list(table.batches(wanted, 0, BatchSize(1 << 20, 1 << 20, 1 << 20)))
        sizes = [batch.nbytes for batch in batches]
        assert len(batches) > 3
        assert max(sizes) < 2 << 20
        assert sum(sizes) < 1.2 * pq.read_table(tmp_path / "a.parquet", columns=[column]).nbytes
