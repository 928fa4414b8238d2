"""Labels that the manifest does not list: refused by every solver before a kernel makes an index of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kit.shared.forged_labels import CHAIN, COMMANDS, _rows

import streamcut
from streamcut import train
from streamcut.errors import CorruptError

NUMBERED = [  # not bsca's: it makes no index of a label
    options for _, options in COMMANDS if ("multiclass" in options or "sequence" in options) and "bsca" not in options
]


@pytest.mark.parametrize("options", NUMBERED)
@pytest.mark.parametrize("label", [2.0, 4.0])
def test_classes_are_numbered_only_with_known_labels(options, label):
    """Of data that is no store: the label between two known ones, and the one above all."""
    X, y, qid = _rows(CHAIN)
    data = streamcut.rows(X, y, qid=qid if "sequence" in options else None)
    statistics = data.manifest.statistics
    labels = {known: rows for known, rows in statistics.labels.items() if known != label}
    data.manifest = replace(data.manifest, statistics=replace(statistics, labels=labels))
    words = options.replace("--", "").split()
    chosen = {name: float(value) if name == "gamma" else value for name, value in zip(words[::2], words[1::2], strict=True)}
    with pytest.raises(CorruptError, match=f"row {int(label)}: the manifest has no label {label:g}"):
        train(data, **chosen)
