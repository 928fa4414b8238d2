"""The first lines left out by `--on-error skip`, which the manifest keeps."""

from __future__ import annotations

from streamcut.io.text.svmlight import Reject

MOST, _LONGEST = 20, 200  # lines, and characters of one


class Refused:
    """`lines`: the first refused lines, each as FILE:LINE:COLUMN: reason: text."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, reject: Reject) -> None:
        if len(self.lines) < MOST:
            text = reject.raw.rstrip(b"\r\n").decode(errors="replace")[:_LONGEST]
            self.lines.append(f"{reject.file}:{reject.line}:{reject.reason}: {text}")
