"""An S3 server on loopback: moto in a process of its own, or that of AWS_ENDPOINT_URL, which needs a bucket `streamcut`."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

BUCKET = "streamcut"


@contextmanager
def s3_server() -> Iterator[str]:
    """The URL of an empty bucket, to which AWS_* of this process's environment lead."""
    import boto3

    if "AWS_ENDPOINT_URL" in os.environ:
        yield f"s3://{BUCKET}"
        return
    with ExitStack() as stack:
        port = stack.enter_context(_moto(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="s3-")))))
        for variable, value in (("ACCESS_KEY_ID", "testing"), ("SECRET_ACCESS_KEY", "testing"), ("DEFAULT_REGION", "us-east-1")):
            os.environ.setdefault(f"AWS_{variable}", value)
        os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{port}"
        stack.callback(os.environ.pop, "AWS_ENDPOINT_URL")
        _until(lambda: boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"]).create_bucket(Bucket=BUCKET))
        yield f"s3://{BUCKET}"


@contextmanager
def _moto(folder: Path) -> Iterator[int]:
    """Its port. Objects above 64 kB go to `folder`."""
    port = _free_port()
    line = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    environment = {**os.environ, "TMPDIR": str(folder), "MOTO_S3_DEFAULT_KEY_BUFFER_SIZE": str(1 << 16)}
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(line, env=environment, stdout=log, stderr=log, cwd=folder)
    try:
        yield port
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    """Below those that the system gives to connections: nobody takes it before the server does."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as trial:
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def _until(call: Callable[[], object], seconds: float = 60.0) -> None:
    """Call it until it succeeds."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            call()
            return
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
