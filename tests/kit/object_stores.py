"""A real S3 server on loopback that goes wrong on demand, for tests of what object storage does, and rows to be stored."""

from __future__ import annotations

import io
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from reference.rows import dump

SECRET = "not-to-be-seen-anywhere"
_BUSY = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Please reduce your request rate</Message></Error>"


def write_rows(path: Path, n: int) -> None:
    """svmlight text of `n` rows with 30 features and labels ±1."""
    rng = np.random.default_rng(0)
    X = sp.random_array((n, 30), density=0.3, rng=rng, format="csr", data_sampler=rng.normal)
    y = np.where(X @ rng.normal(size=30) > 0, 1, -1)
    dump(path, X, y)


class Server:
    """S3 behind a WSGI application that spoils the next requests of `method` by `troubles`, one each.

    500, 503   the answer is an error, and nothing is done
    "short"    half of what is put arrives, and the answer says that all is well
    "cut"      the line breaks in the middle of the answer's body
    "flip"     a bit of the answer's body is another
    "slow"     the body comes in two parts
    "stall"    the body stops in the middle, for as long as there is the server
    (code, body)   the answer is an error with this code and body, and nothing is done

    asked      (method, path) of each request
    stall      bodies of paths that hold this stop from now on; the first sets `stalled`
    """

    def __init__(self, app) -> None:
        self.app, self.method, self.troubles, self.asked, self.url = app, "GET", [], [], ""
        self.stall, self.stalled, self.gone = "", threading.Event(), threading.Event()
        self._lock = threading.Lock()

    def put(self, name: str, content: bytes) -> None:
        """Make an object of the bucket."""
        kind = {"Content-Type": "application/octet-stream"}
        urllib.request.urlopen(
            urllib.request.Request(f"{self.url}/bucket/{name}", content, kind, method="PUT"), timeout=60
        ).close()

    def content(self, folder: str = "") -> dict[str, bytes]:
        """{name below the folder: bytes} of the objects of the bucket."""
        from moto.s3.models import s3_backends

        keys = s3_backends["123456789012"]["aws"].buckets["bucket"].keys
        return {name.removeprefix(folder): keys[name].value for name in sorted(keys) if name.startswith(folder)}

    def spoil(self, method: str, troubles: list) -> None:
        self.method, self.troubles = method, troubles

    def __call__(self, environ, start):
        method = environ["REQUEST_METHOD"]
        with self._lock:
            self.asked.append((method, environ["PATH_INFO"]))
            object_itself = method == self.method and environ["PATH_INFO"].count("/") > 1
            trouble = self.troubles.pop(0) if self.troubles and object_itself else None
            trouble = "stall" if self.stall and object_itself and self.stall in environ["PATH_INFO"] else trouble
        if trouble in (500, 503) or isinstance(trouble, tuple):
            code, body = trouble if isinstance(trouble, tuple) else (trouble, _BUSY)
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start(f"{code} Trouble", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
            return [body]
        if trouble == "short":
            content = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            half = content[: len(content) // 2]
            environ = {**environ, "wsgi.input": io.BytesIO(half), "CONTENT_LENGTH": str(len(half))}
            environ = {name: value for name, value in environ.items() if not name.startswith("HTTP_X_AMZ_CHECKSUM")}
        body = self.app(environ, start)
        return self._spoiled(b"".join(body), trouble) if trouble in ("cut", "flip", "slow", "stall") else body

    def _spoiled(self, body: bytes, trouble: str) -> Iterator[bytes]:
        if trouble == "flip":
            yield body[:-9] + bytes([body[-9] ^ 1]) + body[-8:]
            return
        yield body[: len(body) // 2]
        if trouble == "stall":
            self.stalled.set()
            self.gone.wait()
        if trouble != "slow":
            raise ConnectionError("the line breaks here")
        yield body[len(body) // 2 :]


@contextmanager
def s3_server(monkeypatch):
    """A Server with the bucket `bucket`, to which AWS_* of the environment lead."""
    pytest.importorskip("moto.server")
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    server = Server(DomainDispatcherApplication(create_backend_app))
    http = make_server("127.0.0.1", 0, server, threaded=True)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    server.url = f"http://127.0.0.1:{http.server_port}"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    try:
        urllib.request.urlopen(urllib.request.Request(f"{server.url}/moto-api/reset", method="POST"), timeout=60).close()
        urllib.request.urlopen(urllib.request.Request(f"{server.url}/bucket", method="PUT"), timeout=60).close()
        yield server
    finally:
        server.gone.set()
        http.shutdown()
        http.server_close()
