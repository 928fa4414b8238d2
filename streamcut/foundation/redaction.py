"""Removes secrets in URLs from everything shown, logged or stored, in time linear in the length."""

from __future__ import annotations

import os
import re

HIDDEN = "***"
_ACCOUNTS = ("abfs", "abfss", "wasb", "wasbs", "az", "adl")  # of Azure: the part before @ is a container, if it has no colon
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{0,30}$")
_END = re.compile(r'[\s"<>]')  # no URL continues after these
_LEFT = "'`,.:;!?)]}>"  # at the end of a value: punctuation of the surrounding sentence
_PARAMETER = re.compile(r'([?&;#])([^\s=&;#?"<>]*)=([^\s&;#"<>]*)')
_BARE = re.compile(r'([?#&])([^\s=&;#?"<>*]+)(?=[&;#"<>\s]|$)')
_HARMLESS = {  # parameters whose values are shown; all others are hidden
    "page", "limit", "offset", "version", "versionid", "format", "type", "lang", "table", "sheet", "prefix", "delimiter",
    "list-type", "max-keys", "partnumber", "region", "download", "raw", "x-amz-expires", "x-amz-date", "x-amz-algorithm",
}  # fmt: skip
_SECRETS = re.compile(r"sig|tok|key|secret|pass|pwd|cred|auth|acc|code|jwt|sas|sess|bearer|ticket|otp|pin", re.IGNORECASE)


def redacted(text: str) -> str:
    """`text` without the passwords, tokens and signatures in its URLs: `https://***@host/a?sig=***&page=2`.

    Hides everything before the @ of a server, and the value of every parameter not known to be harmless.
    """
    before, *pieces = text.split("://")
    shown = [before]
    for piece in pieces:
        scheme = _SCHEME.search(before[-31:])
        shown.append(_piece(piece, scheme[0].lower() if scheme else ""))
        before = piece
    return "://".join(shown)


def path_of(data: object) -> str | list[str] | None:
    """The path of `data` (a path, several, an opened data set), or of the stores it joins, without secrets; None: it has none."""
    paths = data if isinstance(data, str | os.PathLike | list) else getattr(data, "paths", getattr(data, "path", None))
    if not isinstance(paths, list):
        return None if paths is None else redacted(os.fspath(paths))
    return (
        [redacted(os.fspath(place)) for place in paths] if all(isinstance(place, str | os.PathLike) for place in paths) else None
    )


def _piece(piece: str, scheme: str) -> str:
    """Redact the text from `scheme://` to the next URL."""
    start = _end_of_user(piece, scheme)
    user = HIDDEN if start else ""
    end = _END.search(piece, start)
    stop = end.start() if end else len(piece)
    url = _PARAMETER.sub(_hidden, piece[start:stop])
    if scheme in ("http", "https"):  # elsewhere ? is a wildcard for one character
        url = _BARE.sub(_hidden_bare, url)
    return user + url + _PARAMETER.sub(_hidden_if_secret, piece[stop:])


def _end_of_user(piece: str, scheme: str) -> int:
    """The position of the @ after user and password; 0: none."""
    limit = _END.search(piece)
    token = piece[: limit.start() if limit else len(piece)]
    server = re.split(r"[/?#]", token, maxsplit=1)[0]
    if "@" in server:
        at = server.rindex("@")
        return 0 if scheme in _ACCOUNTS and ":" not in server[:at] else at
    colon = -1 if server.startswith("[") else server.find(":")  # [::1] is a server
    if colon < 0 or colon + 1 == len(token):  # no password, or the colon of a sentence
        return 0
    if "@" in token:  # a slash in the password; or a port, and @ in the path: better to hide it than to show a secret
        return token.rindex("@")
    port = server[colon + 1 :].rstrip(_LEFT)
    if port.isdigit() or "@" not in piece:
        return 0
    line = piece.split("\n", 1)[0]
    return max(line.rfind("@"), 0)  # a space in the password


def _hidden(match: re.Match[str]) -> str:
    sign, name, value = match.groups()
    return f"{sign}{name}={value if name.lower() in _HARMLESS else _kept_end(value)}"


def _hidden_bare(match: re.Match[str]) -> str:
    return match[1] + _kept_end(match[2])


def _hidden_if_secret(match: re.Match[str]) -> str:
    return _hidden(match) if _SECRETS.search(match[2]) else match[0]


def _kept_end(value: str) -> str:
    """HIDDEN and the punctuation at the end of a value."""
    left = value.rstrip(_LEFT)
    return (HIDDEN if left else "") + value[len(left) :]
