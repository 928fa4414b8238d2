"""Files as other programs write them: AnnData, CellRanger, archives, matrices with labels, svmlight, Parquet, URLs.

Each is read with the right rows, or refused with the cause and a way on.
"""

from __future__ import annotations

import builtins
import csv
import gzip
import http.server
import io
import re
import tarfile
import threading
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import streamcut

READ, USAGE, BAD, NOT_FOUND = 0, 2, 3, 4
ROWS, GENES = 40, 30
rng = np.random.default_rng(3)
X = rng.integers(0, 4, (ROWS, GENES)) * (rng.random((ROWS, GENES)) < 0.4).astype(np.float32)
TYPES = [["B", "T"][i % 3 == 0] for i in range(ROWS)]


def converted(run, source, *options, code=READ, said=""):
    """What `convert` says of a file; where it refuses, no store is left."""
    store = Path(source).parent / "out.zarr" if "://" not in str(source) else Path(options[0])
    found, _, words = run("convert", source, store, "--force", *(options[1:] if "://" in str(source) else options))
    assert found == code, words
    assert "Traceback" not in words
    assert re.search(said, words), words
    assert code == READ or not store.exists()
    return words


# --- AnnData and CellRanger -----------------------------------------------------------------------------------------------------


def cells(form):
    anndata = pytest.importorskip("anndata")
    matrix = {"csr": sp.csr_matrix, "csc": sp.csc_matrix, "dense": np.asarray}[form](X)
    obs = pd.DataFrame(
        {"kind": pd.Categorical(TYPES), "word": TYPES, "count": np.arange(ROWS)}, index=[f"c{i}" for i in range(ROWS)]
    )
    found = anndata.AnnData(matrix, obs=obs, var=pd.DataFrame(index=[f"a gene of a long name {i}" for i in range(GENES)]))
    found.raw = found
    found.layers["counts"] = matrix
    return found


ENTRIES = f"{ROWS} rows, {GENES} features, {np.count_nonzero(X)} entries, labels (B: 26, T: 14|T: 14, B: 26)"


@pytest.mark.parametrize("form", ["csr", "csc", "dense"])
@pytest.mark.parametrize("compression", ["gzip", "lzf", None])
def test_every_way_in_which_anndata_writes_hdf5(run, tmp_path, form, compression):
    cells(form).write_h5ad(tmp_path / "c.h5ad", compression=compression)
    for options in (
        ["--label", "kind"],
        ["--label", "word"],
        ["--label", "kind", "--layer", "counts"],
        ["--label", "kind", "--layer", "raw"],
    ):
        converted(run, tmp_path / "c.h5ad", *options, said=ENTRIES)


@pytest.mark.parametrize("version", [2, 3])
def test_every_way_in_which_anndata_writes_zarr(run, tmp_path, version):
    anndata = pytest.importorskip("anndata")
    with anndata.settings.override(zarr_write_format=version):
        cells("csr").write_zarr(tmp_path / "c.zarr")
    converted(run, tmp_path / "c.zarr", "--label", "kind", said=ENTRIES)
    with zipfile.ZipFile(tmp_path / "c.zarr.zip", "w") as archive:
        for path in sorted((tmp_path / "c.zarr").rglob("*")):
            archive.write(path, path.relative_to(tmp_path / "c.zarr"))
    found, _, words = run("convert", tmp_path / "c.zarr.zip", tmp_path / "z.zarr", "--label", "kind")
    assert found == BAD
    assert "c.zarr.zip: a zipped Zarr group; unzip it, and give what was in it" in words


def test_cells_without_x_need_a_layer(run, tmp_path):
    whole = cells("csr")
    whole.X = None
    whole.write_h5ad(tmp_path / "n.h5ad", compression="gzip")
    converted(
        run, tmp_path / "n.h5ad", "--label", "kind", code=USAGE, said="n.h5ad: has no X; --layer names .* one of counts, raw"
    )
    for layer in ("counts", "raw"):
        converted(run, tmp_path / "n.h5ad", "--label", "kind", "--layer", layer, said=ENTRIES)
    assert run("train", tmp_path / "out.zarr", "-o", tmp_path / "m.npz", "-q")[0] == 0
    code, found, words = run("predict", tmp_path / "m.npz", tmp_path / "n.h5ad")
    assert (code, len(found.splitlines())) == (0, ROWS), words


def test_several_modalities_are_named(run, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "m.h5mu", "w") as file:
        for name in ("obs", "var", "mod/rna", "mod/atac"):
            file.create_group(name)
    converted(run, tmp_path / "m.h5mu", "--label", "kind", code=BAD, said=r"m\.h5mu: not an AnnData file .*holds mod, obs, var")


# --- archives -------------------------------------------------------------------------------------------------------------------


def zipped(path, *names):
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "y,x\n1,2\n")


@pytest.mark.parametrize(
    ("name", "names", "said"),
    [
        ("t.csv.zip", ["t.csv"], r"a zip archive \(t\.csv\); unzip it"),
        ("t.csv", ["t.csv"], r"a zip archive \(t\.csv\); unzip it"),
        ("t.zip", list("abcd"), r"a zip archive \(a, b, c, …\); unzip it"),
        ("t.csv", ["[Content_Types].xml", "xl/workbook.xml"], "a spreadsheet; save it as CSV"),
    ],
)
def test_zip_archives_are_named(run, tmp_path, name, names, said):
    zipped(tmp_path / name, *names)
    converted(run, tmp_path / name, "--label", "y", code=BAD, said=said)


@pytest.mark.parametrize("name", ["d.tar.gz", "d.tgz", "d.tar", "d.tar.xz"])
def test_tar_archives_are_named(run, tmp_path, name):
    with tarfile.open(
        tmp_path / name, "w:" + {"gz": "gz", "tgz": "gz", "tar": "", "xz": "xz"}[name.rpartition(".")[2]]
    ) as archive:
        member = tarfile.TarInfo("d.csv")
        archive.addfile(member, io.BytesIO())
    converted(run, tmp_path / name, "--label", "y", code=BAD, said="an archive; unpack it, and give its files")


# --- labels in files of their own -----------------------------------------------------------------------------------------------


@pytest.fixture
def matrix(tmp_path):
    sp.save_npz(tmp_path / "X.npz", sp.csr_array(X))
    return tmp_path / "X.npz"


def as_parquet(path):
    pq.write_table(pa.table({"y": TYPES}), path)


WORDS = "\n".join(TYPES) + "\n"
NEEDS = "; --label needs a text file with one value per line, or a .npy file of np.save"


@pytest.mark.parametrize(
    ("name", "write", "said"),
    [
        ("latin.txt", lambda path: path.write_bytes("\n".join(["é"] * ROWS).encode("latin-1")), "not UTF-8; convert"),
        ("late.txt", lambda path: path.write_bytes(WORDS.encode() + b"\xe9\n"), "not UTF-8; convert"),
        ("utf16.txt", lambda path: path.write_bytes(WORDS.encode("utf-16")), "text in UTF-16; convert it with: iconv"),
        ("y.npz", lambda path: np.savez(path, y=np.zeros(ROWS)), r"a zip archive or an \.npz file"),
        ("y.parquet", as_parquet, "a Parquet file"),
        ("X2.npz", lambda path: sp.save_npz(path, sp.csr_array(X)), r"a zip archive or an \.npz file"),
        ("y.txt", lambda path: np.save(path.open("wb"), np.zeros(ROWS)), r"a NumPy array, whose name must end in \.npy"),
        ("y.pkl", lambda path: pd.Series(TYPES).to_pickle(path), "a pickle"),
        ("zero.txt", lambda path: path.write_bytes(b"1\0" * ROWS), "holds zero bytes"),
        ("utf32.txt", lambda path: path.write_bytes(WORDS.encode("utf-32")), "text in UTF-32; convert it with: iconv -f UTF-32"),
        ("page.txt", lambda path: path.write_text("<!DOCTYPE html>\n<html>"), "an HTML page, no data; was it downloaded where"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_files_of_labels_that_are_no_text(run, matrix, name, write, said, packed):
    path = matrix.parent / name
    write(path)
    if packed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    words = converted(run, matrix, "--label", path, code=BAD, said=said)
    assert NEEDS in words


@pytest.mark.parametrize("content", [WORDS, "\ufeff" + WORDS, WORDS.replace("\n", "\r\n"), WORDS.replace("B", "é")])
def test_files_of_labels_that_are_text(run, matrix, content):
    (matrix.parent / "y.txt").write_text(content, newline="")
    known = ",".join(f"{word}={number}" for number, word in enumerate(dict.fromkeys(content.lstrip("\ufeff").split())))
    converted(run, matrix, "--label", matrix.parent / "y.txt", "--label-map", known, said=f"{ROWS} rows")


def test_files_of_labels_that_do_not_fit_say_what_they_hold(run, matrix):
    path = matrix.parent / "y.txt"
    path.write_text("type\n" + WORDS)
    known = "type=0," + ",".join(f"{word}={number}" for number, word in enumerate(dict.fromkeys(TYPES)))
    options = ("--label", path, "--label-map", known)
    converted(run, matrix, *options, code=BAD, said=f"{ROWS + 1} values for the {ROWS} rows.*'type', is a name, remove it")
    path.write_text("\n".join(["1"] * (ROWS + 2)))
    converted(run, matrix, "--label", path, code=BAD, said=rf"{ROWS + 2} values for the {ROWS} rows of .*X\.npz$")
    np.save(matrix.parent / "y.npy", np.array(TYPES, object), allow_pickle=True)
    said = r"an array of Python objects; save values\.astype\(str\)"
    converted(run, matrix, "--label", matrix.parent / "y.npy", code=BAD, said=said)


def test_an_array_in_json_and_a_page_in_place_of_a_table_are_named(run, tmp_path):
    (tmp_path / "d.json").write_text('[{"a": 1, "y": 0}]')
    converted(run, tmp_path / "d.json", "--label", "y", code=BAD, said=r"a JSON array.*jq -c '\.\[\]' OLD > NEW")
    (tmp_path / "d.csv").write_text("<!DOCTYPE html>\n<html><body>log in, please</body></html>\n")
    converted(run, tmp_path / "d.csv", "--label", "y", code=BAD, said="an HTML page, no data")


@pytest.mark.parametrize("quoting", ["minimal", "all"])
def test_values_of_several_lines_are_read_and_rows_between_two_stray_quotes_are_not_lost(run, tmp_path, quoting):
    frame = pd.DataFrame(
        {"a": np.arange(60) % 7, "b": ['5" pipe', 'two\nlines, "quoted"', '"open', "plain"] * 15, "y": [0, 1] * 30}
    )
    frame.to_csv(tmp_path / "d.csv", index=False, quoting=csv.QUOTE_ALL if quoting == "all" else csv.QUOTE_MINIMAL)
    converted(run, tmp_path / "d.csv", "--label", "y", said="60 rows")
    (lost := tmp_path / "lost").mkdir()
    rows = [f"{row % 7},{chr(34) + 'open' if row in (4, 13) else 'plain'},{row % 2}" for row in range(100)]
    (lost / "d.csv").write_text("\n".join(["a,b,y", *rows, ""]))
    said = r"d\.csv: line 6: a value begins with a quote, which is closed 9 lines further down, within a line"
    converted(run, lost / "d.csv", "--label", "y", code=BAD, said=said)
    rows = [row.replace('"open', '5" pipe') for row in rows]
    (lost / "d.csv").write_text("\n".join(["a,b,y", *rows, ""]))
    converted(run, lost / "d.csv", "--label", "y", said="100 rows")


def test_a_word_late_among_numbers_is_told_with_what_to_do(run, tmp_path):
    rows = "".join(f"{row % 7},{row % 9},{row % 2}\n" for row in range(250_000))
    (tmp_path / "d.csv").write_text(f"a,b,y\n{rows}1,unknown,0\n")
    said = r"row 250000 \(0-based\), column 'b': .*'unknown' \(--missing unknown if it is no value"
    converted(run, tmp_path / "d.csv", "--label", "y", code=BAD, said=said)
    converted(run, tmp_path / "d.csv", "--label", "y", "--missing", "unknown", said="250,001 rows")


# --- svmlight -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        ("0   21:1.00   63: .50\n", "1:15", "the value is missing after the colon: 63: .*a blank stands next to a colon"),
        ("0 21:1 63 :.50\n", "1:8", "expected index:value: 63 .*a blank stands next to a colon"),
        ("0 21:1 63:", "1:8", "the value is missing after the colon: 63: .*is the file cut off"),
        ("0 1:1.5\n1 13:6.64e-0114:8.7\n", "2:3", "two features without a blank between them"),
        ("1 1:2:0.5\n", "1:3", "libffm's field:feature:value"),
        ("1 0:1:0.5\n", "1:3", "libffm's field:feature:value"),
        ("+1,1:0.5,3:2\n", "1:1", "the label does not end: .*blanks separate features, not commas"),
        ("1 0.5 0.25\n", "1:3", "expected index:value: 0.5 .if rows are values of all features, write them as CSV"),
        ("1 1\n0 2\n", "1:3", "expected index:value: 1 .features need values, as in 7:1"),
        ("-1 4 7\n", "1:4", "features need values, as in 7:1"),
        ("15539 5000 3993\n1 1:1\n", "1:7", "if this is the header of an XMLC file.*remove the line; else features need values"),
        ("324, 674, 54 234:1\n", "1:1", "several labels: 324, .labels stand without blanks, as in 3,4,5"),
        ("1,2 3:1\n", "1:1", "several labels: 1,2 .--set multilabel=LABEL"),
    ],
)
def test_hints_on_svmlight_name_the_cause(run, tmp_path, text, where, said):
    (tmp_path / "t.svm").write_text(text)
    converted(run, tmp_path / "t.svm", code=BAD, said=rf"t\.svm:{where}: .*{said}")


def test_what_the_hints_say_helps(run, tmp_path):
    (tmp_path / "t.svm").write_text(re.sub(r"[ \t]*:[ \t]*", ":", "0 21 : 1.00   63: .50\n1 21:1\n"))
    converted(run, tmp_path / "t.svm", said="2 rows, 63 features, 3 entries")
    (tmp_path / "t.svm").write_text(re.sub(r", *", ",", "324, 674, 54 234:1\n1, 54 3:1\n"))
    converted(run, tmp_path / "t.svm", "--set", "multilabel=674", said="2 rows, 234 features, 2 entries, labels -1: 1, 1: 1")


# --- Parquet, Arrow and frames --------------------------------------------------------------------------------------------------


HALF = np.arange(ROWS).astype(np.float16) / 4
COLUMNS = {"y": TYPES, "half": pa.array([*HALF[:-1], None], pa.float16()), "whole": list(range(ROWS)), "word": ["a", "b"] * 20}


def test_lists_of_features_without_values_are_ones(run, tmp_path):
    pq.write_table(pa.table({"y": [1, -1], "at": [[0, 2], [1]]}), tmp_path / "t.parquet")
    columns = "--set", "index-column=at", "--set", "value-column="
    converted(run, tmp_path / "t.parquet", "--label", "y", *columns, said="2 rows, 3 features, 3 entries")


def test_half_precision_is_read_everywhere(run, tmp_path):
    table = pa.table(COLUMNS)
    pq.write_table(table, tmp_path / "t.parquet")
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as file:
        file.write_table(table)
    single = table.set_column(1, "half", table["half"].cast(pa.float32()))
    streamcut.convert(single, tmp_path / "f.zarr", label="y")
    model = streamcut.train(tmp_path / "f.zarr")
    expected = streamcut.predict(model, single, answer="scores")
    for source in (tmp_path / "t.parquet", tmp_path / "t.arrow"):
        converted(run, source, "--label", "y", said=f"{ROWS} rows, 5 features")
    frame = pd.DataFrame(
        {"y": TYPES, "half": [*HALF[:-1], np.float16("nan")], "whole": COLUMNS["whole"], "word": COLUMNS["word"]}
    )
    assert frame["half"].dtype == np.float16
    for data in (table, tmp_path / "t.parquet", tmp_path / "t.arrow", frame, frame[:3], table.slice(0, 3)):
        scores = streamcut.predict(model, data, answer="scores")
        np.testing.assert_array_equal(scores, expected[: len(scores)])


def test_half_precision_in_lists_and_dictionaries(run, tmp_path):
    lists = pa.array([HALF[i : i + 2] for i in range(2)], pa.list_(pa.float16()))
    pq.write_table(pa.table({"y": [0, 1], "indices": [[0, 1], [1, 2]], "values": lists}), tmp_path / "l.parquet")
    converted(run, tmp_path / "l.parquet", "--label", "y", said="2 rows, 3 features, 3 entries")
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 20), pa.array(HALF[1:3], pa.float16()))
    streamcut.convert(pa.table({"y": TYPES, "x": coded}), tmp_path / "d.zarr", label="y")


class ShortReads(io.FileIO):
    """A file of a file system in user space: a read may return less than asked for."""

    def read(self, size=-1):
        return super().read(min(size, 1000) if size > 0 else size)

    def readinto(self, target):
        return super().readinto(memoryview(target)[:1000])


@pytest.mark.parametrize("kind", ["parquet", "arrow", "arrows", "csv", "jsonl"])
def test_short_reads_are_no_damage(run, tmp_path, monkeypatch, kind):
    table = pa.table({"y": [0, 1] * 3000, "a": rng.random(6000), "word": rng.choice(["a", "b"], 6000)})
    path, whole = tmp_path / f"t.{kind}", builtins.open
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=2500)
    elif kind in ("arrow", "arrows"):
        with (pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream)(path, table.schema) as file:
            file.write_table(table, 2500)
    else:
        write = {
            "csv": lambda frame: frame.to_csv(path, index=False),
            "jsonl": lambda frame: frame.to_json(path, orient="records", lines=True),
        }
        write[kind](table.to_pandas())

    def opened(file, mode="r", buffering=-1, *more, **named):
        if not isinstance(file, int) or mode != "rb":
            return whole(file, mode, buffering, *more, **named)
        raw = ShortReads(file, "rb")
        return raw if buffering == 0 else io.BufferedReader(raw)

    monkeypatch.setattr(builtins, "open", opened)
    converted(run, path, "--label", "y", said="6,000 rows, 3 features")


def test_texts_as_bytes_are_the_texts_that_a_model_knows(tmp_path):
    words, size = ["cod", "eel", "ß", None] * 30, [1.0, 2.5, 4.0] * 40
    table = pa.table({"y": [0, 1, 1, 0] * 30, "kind": pa.array(words), "size": size})
    model = streamcut.train(table, label="y")
    expected = streamcut.predict(model, table, answer="scores")
    for kind in (pa.binary(), pa.large_binary(), pa.dictionary(pa.int32(), pa.binary())):
        coded = table["kind"].combine_chunks()
        coded = (
            coded.cast(pa.binary()).dictionary_encode() if pa.types.is_dictionary(kind) else coded.cast(pa.binary()).cast(kind)
        )
        as_bytes = table.set_column(1, "kind", coded)
        answers = streamcut.predict(model, as_bytes, answer="scores")
        np.testing.assert_array_equal(answers, expected)
    pq.write_table(table.set_column(1, "kind", table["kind"].cast(pa.binary())), tmp_path / "t.parquet")
    np.testing.assert_array_equal(streamcut.predict(model, tmp_path / "t.parquet", answer="scores", strict=True), expected)


# --- URLs with a query ----------------------------------------------------------------------------------------------------------


class Signed(http.server.SimpleHTTPRequestHandler):
    """Serves a folder; the query counts for nothing, so a name after it is the same file. Ranges are served."""

    protocol_version = "HTTP/1.1"
    ranges = True

    def log_message(self, *_):
        pass

    def _serve(self, body):
        path = Path(self.directory) / self.path.partition("?")[0].lstrip("/")
        content = path.read_bytes() if path.is_file() else b""
        wanted = re.match(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")) if self.ranges else None
        part = content[int(wanted[1]) : int(wanted[2]) + 1] if wanted else content
        self.send_response(404 if not path.is_file() else 206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {wanted[1]}-{int(wanted[1]) + len(part) - 1}/{len(content)}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        if body:
            self.wfile.write(part)

    def do_GET(self):
        self._serve(True)

    def do_HEAD(self):
        self._serve(False)


@pytest.fixture
def server(tmp_path):
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *given: Signed(*given, directory=tmp_path))
    found.handle_error = lambda *_: None  # a client that has enough closes the connection
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{found.server_address[1]}"
    found.shutdown()
    found.server_close()


@pytest.mark.parametrize("query", ["?X-Amz-Signature=abc&X-Amz-Date=2024", "?sig=a%2Fb*c[1]", ""])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.jsonl", "t.svm"])
def test_signed_urls(run, tmp_path, server, name, query):
    pytest.importorskip("obstore")
    frame = pd.DataFrame({"y": [0, 1] * 30, "x": np.arange(60) / 4})
    if name.endswith("parquet"):
        frame.to_parquet(tmp_path / name)
    elif name.endswith("svm"):
        (tmp_path / name).write_text("1 1:1\n-1 1:2\n" * 30)
    else:
        text = frame.to_csv(index=False) if "csv" in name else frame.to_json(orient="records", lines=True)
        (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    label = () if name.endswith("svm") else ("--label", "y")
    converted(run, f"{server}/{name}{query}", tmp_path / "out.zarr", *label, said="60 rows, 1 features")


def test_a_server_that_gives_no_parts_of_files(run, tmp_path, server, monkeypatch):
    pytest.importorskip("obstore")
    monkeypatch.setattr(Signed, "ranges", False)  # as Python's own does
    (tmp_path / "t.csv").write_text("x,y\n" + "1,0\n2,1\n" * 30)
    said = r"t\.csv: this server does not give parts of a file; download it first"
    converted(run, f"{server}/t.csv", tmp_path / "out.zarr", "--label", "y", code=NOT_FOUND, said=said)


def test_signed_urls_of_what_is_not_read(run, tmp_path, server):
    pytest.importorskip("obstore")
    zipped(tmp_path / "t.tar.gz", "a")
    words = converted(run, f"{server}/t.tar.gz?sig=secret", tmp_path / "out.zarr", "--label", "y", code=BAD, said="an archive")
    assert "secret" not in words
    converted(run, f"{server}/none.csv?sig=a", tmp_path / "out.zarr", "--label", "y", code=NOT_FOUND, said=r"none\.csv")
