"""One module knows in what Linux and macOS differ."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_nothing_else_asks_for_the_system():
    """What only some systems have is used in streamcut/foundation/systems.py alone."""
    words = ("import fcntl", "import resource", "sched_getaffinity", "os.posix_f", "memfd", "os.uname", "statvfs", "sysconf",
             "madvise", "sys.platform",
             "/proc/meminfo", "/proc/self/status")  # fmt: skip
    found = [
        (str(path.relative_to(ROOT)), word)
        for folder in ("streamcut", "io")
        for path in (ROOT / folder).rglob("*.py")
        for word in words
        if word in path.read_text("utf-8") and path.name != "systems.py"
    ]
    assert found == []
