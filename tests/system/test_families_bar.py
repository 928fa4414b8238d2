"""The bar of bench_families.py: a family that takes a fifth longer than in another version is told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.smoke

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts" / "benchmarks"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import bench_families

    return bench_families


class Stub:
    """A version that answers with these seconds."""

    def __init__(self, seconds):
        self.seconds = seconds

    def ask(self, **asked):
        if self.seconds is None:
            return {"error": "UsageError: no option"}
        return {"plain": {"seconds": self.seconds * (1.0 if asked["set"] == "a" else 3.0)}}

    def close(self):
        pass


@pytest.mark.parametrize(("here", "there", "status"), [(1.19, 1.0, 0), (1.25, 1.0, 1), (0.0031, 0.0015, 0), (2.0, None, 0)])
def test_it_ends_with_one_if_a_family_is_worse_by_a_fifth(bench, monkeypatch, capsys, here, there, status):
    versions = [Stub(here), Stub(there)]
    monkeypatch.setattr(bench, "sources", lambda revision, tree: tree)
    monkeypatch.setattr(bench, "Version", lambda tree: versions[int(tree.name[1])])
    monkeypatch.setattr(bench, "chosen", lambda options: [("hinge", "a", 1.0), ("hinge", "b", 1.0), ("hinge", "a", 10.0)])
    monkeypatch.setattr(bench, "their_best", lambda family, name, C: {})
    monkeypatch.setitem(sys.modules, "families", type(sys)("families"))
    sys.modules["families"].FAMILIES = {"hinge": None}
    options = type("Options", (), {"against": "REV"})
    assert bench.against(options) == status
    told = capsys.readouterr().out
    assert ("WORSE" in told) == bool(status)
    assert ("not compared" in told) == (there is None)


def test_a_line_says_how_far_both_are_above_the_best_bound(bench):
    peer = {"peer": "LIBLINEAR", "their seconds": 2.0, "reached": 11.0}
    plain = {"seconds": 1.0, "primal": 12.0, "bound": 9.0, "passes": 5}
    target = {"seconds": 3.0, "primal": 11.0, "bound": 10.0, "passes": 9}
    found = bench.line("a9a", 1.0, peer, {"plain": plain, "target": target})
    assert (found["ratio"], found["to target"], found["reached"]) == (0.5, 1.5, True)
    assert (found["above"], found["theirs above"]) == (pytest.approx(0.2), pytest.approx(0.1))
