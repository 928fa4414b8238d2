"""An S3 server on loopback, in a process of its own, for scripts that measure or try object storage (moto[server], s3fs)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

BUCKET = "streamcut"


@contextmanager
def s3_server() -> Iterator[str]:
    """s3://BUCKET of a new server, to which AWS_* of this process's environment lead, or of AWS_ENDPOINT_URL."""
    import s3fs

    if "AWS_ENDPOINT_URL" in os.environ:
        yield f"s3://{BUCKET}"
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    small = {**os.environ, "MOTO_S3_DEFAULT_KEY_BUFFER_SIZE": str(1 << 16)}  # larger objects go to its disk
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], env=small, **quiet)
    try:
        os.environ.setdefault("AWS_ACCESS_KEY_ID", "testing")
        os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "testing")
        os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
        os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{port}"
        for _ in range(300):
            with socket.socket() as trial:
                if trial.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        s3fs.S3FileSystem().mkdir(BUCKET)
        yield f"s3://{BUCKET}"
    finally:
        server.kill()
        server.wait()
