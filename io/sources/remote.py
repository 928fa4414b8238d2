"""Tables behind URLs (fsspec): the files that a URL, a folder or a glob of URLs stands for."""

from __future__ import annotations

import glob
from typing import Any

from streamcut.errors import NotFoundError
from streamcut.io.places.answers import ask
from streamcut.io.places.remote import path_in, retried
from streamcut.io.stores.spec import MANIFEST


def remote_files(url: str) -> list[str]:
    """The URLs that a glob matches, or in a folder; `url` itself when it is a file, a store, or unknown.

    Folders are listed without hidden files and marker files of writers (`_SUCCESS`). Raises NotFoundError when a glob
    matches nothing, or a folder holds nothing.
    """
    if path_in(url) != url:
        return [url]
    try:
        from fsspec.core import url_to_fs

        system, path = url_to_fs(url)
    except (ImportError, ValueError):  # its reader will report it
        return [url]

    def asked(method: str, path: str) -> Any:
        return retried(url, lambda: ask(system, method, path), doing="read")

    if glob.has_magic(path):
        found = [name for name in asked("glob", path) if asked("isfile", name)]
        if not found:
            raise NotFoundError(f"{url}: no file matches this pattern")
    elif asked("isfile", path) or not asked("isdir", path) or asked("exists", f"{path.rstrip('/')}/{MANIFEST}"):
        return [url]
    else:
        inside = ((name, name[len(path.rstrip("/")) :].strip("/").split("/")) for name in asked("find", path))
        found = [name for name, parts in inside if not any(part.startswith((".", "_")) for part in parts)]
        if not found:
            raise NotFoundError(f"{url}: the folder holds no files")
    return [system.unstrip_protocol(name) for name in sorted(found)]
