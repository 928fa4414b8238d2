"""What tests/io/test_store_power_loss.py and tests/inside/io/test_store_power_loss.py share."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """What is durable is the recorder's to say; real disks take their time."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
