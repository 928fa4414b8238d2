"""The first steps of every fuzzer; scripts/checks/fuzz.py goes on."""

from __future__ import annotations

import random

import pytest
from kit.fuzzing import make

from inside.kit.fuzzing import FUZZERS
from inside.kit.fuzzing_doors import DOORS
from inside.kit.fuzzing_text import TEXTS

STEPS = {
    "flips": 60,
    "manifests": 400,
    "recipes": 400,
    "checkpoints": 300,
    "stores": 75,
    "hdf5": 50,
    "bits": 150,
    "lies": 60,
}
STEPS |= {"frames": 200, "svmlight": 100, "vw": 60, "csv": 60, "tsv": 40, "jsonl": 40}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make(tmp_path_factory.mktemp("fuzzing"))


@pytest.mark.thirds
@pytest.mark.parametrize("name", FUZZERS)
@pytest.mark.filterwarnings("ignore")
def test_48_fuzzed(made, name):
    steps = FUZZERS[name](random.Random(0), made)
    found = [next(steps) for _ in range(STEPS[name])]
    steps.close()
    if name not in ("flips", *TEXTS):
        assert any("refused" in each for each in found) if name in DOORS else "refused" in found
