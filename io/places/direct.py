"""Bodies of objects behind S3 and https URLs, bypassing fsspec's clients: those run in Python on one thread, take three times
the processor time of a plain download, and keep the connection waiting.

S3's URLs are signed by fsspec's file system, with its keys. A failed request is repeated through that file system, which
reports its errors; after repeated failures this path is no longer used.
"""

from __future__ import annotations

import os
import time
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from streamcut.foundation.interrupts import GivenUp
from streamcut.io.places.answers import ask, limit_of

_VALID = 3600  # seconds that a signature is valid; it is used for half of that
_FAILURES = 4  # in a row
_CONNECTING = 10.0  # seconds


class Direct:
    """Objects of fsspec's file system `files`, by HTTP; it signs their URLs if `signed`. Safe to use from several
    threads, `connections` at a time."""

    protocol, async_impl = ("https",), False

    def __init__(self, files: Any, *, signed: bool, connections: int) -> None:
        import urllib3

        self._files, self._signed, self._urls = files, signed, dict[str, tuple[str, float]]()
        trusted = os.environ.get("AWS_CA_BUNDLE") if signed else None
        self._pool, self._failed = urllib3.PoolManager(maxsize=connections, ca_certs=trusted), 0

    def get(self, path: str, length: int) -> bytes | None:
        """The body of `path`, which is `length` bytes long; None if the file system must be used.

        Raises TimeoutError and GivenUp as streamcut.io.places.answers.ask does.
        """
        if self._failed >= _FAILURES:
            return None
        try:
            content = ask(self, "body", self._url(path), length, size=length)
        except (TimeoutError, GivenUp):
            raise
        except Exception:  # the file system will meet the same error and report it
            content = None
        self._failed = 0 if content is not None else self._failed + 1
        return content

    def body(self, url: str, length: int) -> bytes | None:
        """The body sent by the server, if it is `length` bytes long; None for any other answer."""
        import urllib3

        limit = urllib3.Timeout(connect=_CONNECTING, read=limit_of(length))
        answer = self._pool.request("GET", url, preload_content=False, timeout=limit, retries=False, redirect=False)
        try:
            if answer.status != 200 or int(answer.headers.get("Content-Length", -1)) != length:
                return None
            return answer.read(decode_content=False)
        finally:
            answer.release_conn() if answer.status == 200 else answer.close()

    def _url(self, path: str) -> str:
        if not self._signed:
            return path
        url, until = self._urls.get(path, ("", 0.0))
        if time.monotonic() > until:
            url = ask(self._files, "url", path, expires=_VALID)
            self._urls[path] = url, time.monotonic() + _VALID / 2
        return url


def direct(files: Any, url: str, connections: int) -> Direct | None:
    """A Direct for the file system of `url`; None if that has settings that would be lost: proxies, extra headers or request
    parameters."""
    protocol = files.protocol if isinstance(files.protocol, tuple) else (files.protocol,)
    signed = "s3" in protocol
    if signed:
        known = [getattr(files, name, None) for name in ("client_kwargs", "req_kw", "s3_additional_kwargs", "version_aware")]
        place = (getattr(files, "endpoint_url", None) or os.environ.get("AWS_ENDPOINT_URL") or "https://s3.amazonaws.com").lower()
    else:
        known, place = [getattr(files, "client_kwargs", None), getattr(files, "kwargs", None), "@" in urlsplit(url).netloc], url
    parts = urlsplit(place)
    proxies = urllib.request.getproxies().get(parts.scheme) and not urllib.request.proxy_bypass(parts.hostname or "")
    if any(known) or proxies or not (signed or {"http", "https"} & set(protocol)):
        return None
    try:
        return Direct(_signer(files) if signed else files, signed=signed, connections=connections)
    except ImportError:
        return None


def _signer(files: Any) -> Any:
    """The file system with signatures of version 4, the only ones accepted by buckets created since 2020."""
    if getattr(files, "anon", False):
        return files
    options = dict(getattr(files, "storage_options", {}))
    config = {"signature_version": "s3v4", **(options.pop("config_kwargs", None) or {})}
    return type(files)(*getattr(files, "storage_args", ()), **options, config_kwargs=config)
