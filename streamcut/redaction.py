"""Secrets that URLs carry, taken out of whatever is shown, logged or stored."""

from __future__ import annotations

import re

HIDDEN = "***"
_USER = re.compile(r"(?<=://)[^/\s:@]*:[^/\s]*(?=@)")  # user:password; a container of Azure (abfs://name@account) has no colon
_NAMES = "sig|token|key|secret|passw|cred|auth"
_QUERY = re.compile(rf"(?<=[?&;])([^\s=&;]*(?:{_NAMES})[^\s=&;]*=)[^\s&;'\"]+", re.IGNORECASE)


def redacted(text: str) -> str:
    """`text` without the passwords and signatures in its URLs: `https://***@host/a?sig=***&page=2`."""
    if "://" not in text:
        return text
    return _QUERY.sub(rf"\1{HIDDEN}", _USER.sub(HIDDEN, text))
