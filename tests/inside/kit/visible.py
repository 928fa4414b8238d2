"""Names that would steer a terminal or become markup."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from kit.visible import is_harmless

from streamcut.foundation.shown import html


def load_words(page: Path, name: str) -> bool:
    """Whether the page is well-formed, has no script but its numbers, and shows the name escaped."""
    found = page.read_bytes().decode()
    tags: list[tuple[str, dict]] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, given: tags.append((tag, dict(given)))
    parser.feed(found)
    assert [given.get("type") for tag, given in tags if tag == "script"] == ["application/json"]
    assert is_harmless(found)
    return html(name).replace("&#x27;", "'").split("&")[0] in found.replace("&#x27;", "'")
