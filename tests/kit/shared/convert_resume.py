"""What tests/io/test_convert_resume.py and tests/inside/io/test_convert_resume.py share."""

from pathlib import Path

import pytest
from reference.rows import make_rows, store_bytes, write_svmlight


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    """1,500 rows of about 5,000 entries, 13 shards, with a line in ten that is none."""
    path = write_svmlight(tmp_path_factory.mktemp("text") / "a.svm", make_rows(1500, 4))
    lines = path.read_text().splitlines(keepends=True)
    for i in range(0, 1500, 10):
        lines.insert(i, "# a comment\n")
    path.write_text("".join(lines))
    spoiled = [line if i % 10 else "spoiled\n" for i, line in enumerate(lines)]
    (path.parent / "spoiled.svm").write_text("".join(spoiled))
    write_svmlight(path.parent / "groups.svm", make_rows(1500, 4, groups=5))
    return path


def finals(folder: Path) -> dict[str, dict | bytes]:
    """Everything under a final name."""
    found = {}
    for path in folder.iterdir():
        if not path.name.endswith((".partial", ".replaced", ".tmp")):
            found[path.name] = store_bytes(path) if path.is_dir() else path.read_bytes()
    return found
