"""Files whose headers, types and flags say what is not so: refused with a sentence, within the memory that was allowed."""

from __future__ import annotations

from pathlib import Path

import kit.shared.lies
import numpy as np
import pytest

import streamcut
from streamcut import load_model
from streamcut.errors import BadInputError, StreamcutError
from streamcut.foundation.redaction import redacted
from streamcut.io.text.vw import VwOptions, VwSource

here = kit.shared.lies.here


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    (folder / "a.svm").write_text("".join(f"{k % 2 * 2 - 1} 1:{k % 2 - 0.5} 2:{k}\n" for k in range(20)))
    streamcut.convert(folder / "a.svm", folder / "a.zarr")
    streamcut.save_model(streamcut.train(str(folder / "a.zarr"), task="binary", max_passes=2), folder / "m.npz")
    return folder / "m.npz"


# --- one rule for importances (row 69), configurations (row 71), secrets (row 76), files that change ---


@pytest.mark.parametrize("block", [16, 64, 1 << 19])
def test_row_69_the_first_row_says_whether_there_are_importances(block):
    def read(lines: list[str]) -> list[np.ndarray | None]:
        Path("x.vw").write_text("\n".join(lines) + "\n")
        return [chunk.weight for chunk, _ in VwSource(["x.vw"], VwOptions(hash_bits=8), block_bytes=block).blocks()]

    without, given = ["1 |a x"] * 9, "1 2.5 |a x"
    assert all(weight is None for weight in read(without))
    for lines in ([*without, given], [without[0], given], [without[0], given, *without]):
        with pytest.raises(BadInputError, match=rf"x.vw:{lines.index(given) + 1}: an importance, but the first row has none"):
            read(lines)
    weights = [weight for weight in read([given, *without]) if weight is not None]
    assert np.concatenate(weights).tolist() == [2.5, *[1.0] * 9]


SECRET = "hunter2SECRET"
SPELLINGS = [
    "https://{}@host/a.csv", "https://user:{}@host/a.csv", "https://:{}@host/a",
    "https://user:{}/x{}@host/a", "https://user:{} {}@host/a",
    "https://user:{}?{}@host/a", "https://user:{}#{}@host/a", "https://user:a@{}@host/a",
    "ftp://user:{}@host/a", "sftp://{}@host:22/a",
    "https://host/a?pwd={}", "https://host/a?pass={}", "https://host/a?password={}&page=2",
    "https://host/a?access={}", "https://host/a?code={}",
    "https://host/a?jwt={}", "https://host/a?X-Amz-Signature={}", "https://host/a?sv=2020&sig={}",
    "https://host/a?AWSAccessKeyId={}", "https://host/a?id={}",
    "https://host/a?p%61ss={}", "https://host/a?TOKEN={}", "https://host/a?page=2&amp;token={}",
    "https://host/a#token={}", "https://host/a#access_token={}&x=1",
    "https://host/a?{}", "https://host/a#{}", "https://host/a;jsessionid={}",
    "https://host/a?next=https://other/b&auth={}", "zip://a.csv::https://u:{}@host/a.zip",
    "s3://{}:{}@bucket/a", "abfss://box:{}@account.net/a", "https://host/a?q='{}'",
    "https://host/a?token={}", "https://u:{}@[::1]:9000/a",
]  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("around", ["{}", "{}: no such file", "cannot open '{}', nor", "({})", "a https://x/y and {}; try again"])
def test_row_76_no_spelling_of_a_secret_is_shown(spelling, around):
    said = around.format(spelling.format(SECRET, SECRET))
    assert "SECRET" not in redacted(said)
    assert "SECRET" not in str(StreamcutError(said))
    assert redacted(redacted(said)) == redacted(said)


def test_row_76_redaction_takes_linear_time():
    from time import process_time

    for text in (
        "://" + "?" * 10**6,
        "://" * 10**5,
        "://x:" + "@ " * 10**5,
        "a" * 10**6 + "://b?c=d",
        "://" + "?a" * 10**5,
        "://h/?a=" * 10**5,
    ):
        began = process_time()
        redacted(text)
        assert process_time() - began < 10  # a quadratic one takes hours


@pytest.mark.parametrize("name", ["part-*.svm", "folder"])
def test_row_57_a_file_of_a_glob_that_changes_is_noticed(model, monkeypatch, name):
    from streamcut.data.inputs import Raw, rows_of
    from streamcut.io.unchanged import ChangedInputError

    folder = Path("folder") if name == "folder" else Path(".")
    folder.mkdir(exist_ok=True)
    for k in (1, 2):
        (folder / f"part-{k}.svm").write_text("1 1:1\n-1 1:2\n")
    rows = rows_of(name, load_model(model).recipe, Raw(format="svmlight"))
    next(rows)
    (folder / "part-2.svm").write_text("1 1:1\n-1 1:2\n1 1:3\n")
    with pytest.raises(ChangedInputError, match=r"part-2\.svm"):
        list(rows)
