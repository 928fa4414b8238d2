"""Tables behind URLs: the files that a URL, a folder or a glob of URLs stands for."""

from __future__ import annotations

import glob
import re
from fnmatch import translate

from streamcut.errors import NotFoundError
from streamcut.io.places.remote import OBJECT_STORES, objects_below, size_of
from streamcut.io.stores.spec import MANIFEST


def remote_files(url: str) -> list[str]:
    """The URLs that a glob matches, or in a folder; `url` itself when it is a file, a store, or unknown.

    Folders are listed without hidden files and marker files of writers (`_SUCCESS`). Raises NotFoundError when a glob
    matches nothing, or a folder holds nothing.
    """
    if url.partition("://")[0] not in OBJECT_STORES:
        return [url]
    if glob.has_magic(url):
        folder = re.split(r"[*?[]", url)[0].rpartition("/")[0]
        matches = re.compile(translate(url[len(folder) + 1 :]).replace(".*", "[^/]*")).match
        found = [name for name in objects_below(folder) if matches(name)]
        if not found:
            raise NotFoundError(f"{url}: no file matches this pattern")
    elif size_of(url) is not None or not (below := objects_below(url)) or MANIFEST in below:
        return [url]
    else:
        folder = url.rstrip("/")
        found = [name for name in below if not any(part.startswith((".", "_")) for part in name.split("/"))]
        if not found:
            raise NotFoundError(f"{url}: the folder holds no files")
    return [f"{folder}/{name}" for name in sorted(found)]
