"""What every data set must do, wherever it comes from. Subclasses give a fixture `dataset`: the fixture `rows`, stored."""

from __future__ import annotations

SHARD_NNZ = 500


KINDS = ("text", "ones", "queries", "gaps")
