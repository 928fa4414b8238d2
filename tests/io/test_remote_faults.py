"""What servers do wrong, and what is wrong with URLs: requests end and are repeated, mistakes are named before any work."""

from __future__ import annotations

import pytest
from kit.object_stores import s3_server, write_rows

import streamcut
from streamcut.errors import NotFoundError, UsageError

URL = "s3://bucket/a.zarr"
OPTIONS = {"solver": "ocas", "max_passes": 4, "tol": 1e-9, "tol_relative": None, "lanes": 2, "memory": "4GB"}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    write_rows(folder / "a.svm", 900)
    return folder / "a.svm"


@pytest.fixture
def server(monkeypatch, text):
    """An S3 server with the store URL of five shards."""
    monkeypatch.delenv("STREAMCUT_TIMEOUT", raising=False)
    with s3_server(monkeypatch) as found:
        streamcut.convert(text, URL, shard_nnz=2000)
        found.asked.clear()
        yield found


def test_retries_are_a_variable(server, run, monkeypatch):
    for retries in (0, 2):
        server.spoil("GET", [500] * 9)
        monkeypatch.setenv("STREAMCUT_RETRIES", str(retries))
        code, _, err = run("info", URL)
        assert (code, "500" in err, server.url in err) == (4, True, False), err
        assert len(server.troubles) == 9 - (1 + retries)
    for wrong in ("-1", "21", "many", "²", ""):
        monkeypatch.setenv("STREAMCUT_RETRIES", wrong)
        with pytest.raises(UsageError, match="is not a number from 0 to 20"):
            streamcut.open(URL)


def test_the_timeout_is_set_by_a_variable_and_in_python(server, monkeypatch):
    monkeypatch.setenv("STREAMCUT_TIMEOUT", "soon")
    with pytest.raises(UsageError, match="'soon' is not a number of seconds"):
        streamcut.open(URL)
    for wrong in (0, -1, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="above 0"):
            streamcut.set_timeout(wrong)


@pytest.mark.parametrize("trouble", ["stall", "cut", "flip", 503])
def test_what_fails_is_repeated_and_the_bits_are_the_same(server, text, tmp_path, monkeypatch, trouble):
    streamcut.convert(text, tmp_path / "a.zarr", shard_nnz=2000)
    monkeypatch.setenv("STREAMCUT_TIMEOUT", "1")
    server.spoil("GET", [None] * 3 + [trouble, None, trouble])
    model = streamcut.train(URL, **OPTIONS)
    assert server.troubles == []
    assert model.weights.tobytes() == streamcut.train(tmp_path / "a.zarr", **OPTIONS).weights.tobytes()


def test_what_stalls_for_ever_is_an_error(server, monkeypatch):
    monkeypatch.setenv("STREAMCUT_RETRIES", "1")
    monkeypatch.setenv("STREAMCUT_TIMEOUT", "0.3")
    server.stall = "/"
    with pytest.raises(NotFoundError, match=r"manifest\.json: cannot be read"):
        streamcut.open(URL)


def test_what_is_not_there_is_named_before_work(server, run, tmp_path, text):
    model = tmp_path / "m.npz"
    bucket, object_, store = "there is no bucket 'nosuch'", "no such file", "there is nothing at this address"
    for command, said in (
        (("train", "s3://nosuch/a.zarr", "-o", model), f"s3://nosuch/a.zarr: {bucket}; check"),
        (("train", "s3://bucket/b.zarr", "-o", model), f"s3://bucket/b.zarr: {store}"),
        (("train", URL, "-o", "s3://nosuch/m.npz"), f"s3://nosuch/m.npz: {bucket}; create it first"),
        (("convert", text, "s3://nosuch/b.zarr"), f"s3://nosuch/b.zarr: {bucket}; create it first"),
        (("convert", "s3://nosuch/a.svm", tmp_path / "b.zarr"), f"s3://nosuch/a.svm: {bucket}"),
        (("verify", "s3://bucket/m.npz"), f"s3://bucket/m.npz: {object_}"),
    ):
        code, _, err = run(*command)
        assert (code, said in err) == (4, True), (command, err)
        assert not model.exists()


def test_no_credentials_are_named_at_once(server, run, tmp_path, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("STREAMCUT_TIMEOUT", "59")  # no client that was made with them
    code, _, err = run("train", URL, "-o", tmp_path / "m.npz")
    assert (code, "there are no credentials" in err, "AWS_ACCESS_KEY_ID" in err) == (4, True, True)


@pytest.mark.parametrize(
    ("code", "name", "said"),
    [(403, "AccessDenied", "check the credentials"), (301, "PermanentRedirect", "region"), (405, "MethodNotAllowed", "405")],
)
def test_what_cannot_change_is_not_repeated(server, code, name, said):
    body = f"<?xml version='1.0'?><Error><Code>{name}</Code><Message>not here</Message></Error>".encode()
    server.spoil("GET", [(code, body)] * 9)
    with pytest.raises(NotFoundError, match=said):
        streamcut.open(URL)
    assert len(server.troubles) >= 7  # the object, and whether there is its bucket


def test_a_signed_address_is_one_file(server, tmp_path):
    boto3 = pytest.importorskip("boto3")
    client = boto3.client("s3", endpoint_url=server.url)
    client.put_object(Bucket="bucket", Key="a b.csv", Body=b"y,x\n" + b"1,0.5\n0,3.5\n" * 60)
    url = client.generate_presigned_url("get_object", Params={"Bucket": "bucket", "Key": "a b.csv"})
    for address in ("s3://bucket/a b.csv", url):
        assert streamcut.convert(address, tmp_path / "a.zarr", label="y", header=True, force=True).rows == 120
