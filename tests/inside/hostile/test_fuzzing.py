"""The first steps of every fuzzer; scripts/checks/fuzz.py goes on."""

from __future__ import annotations

import random

import pytest

from inside.kit.fuzzing import FUZZERS, make

STEPS = {"flips": 60, "svmlight": 100, "vw": 60, "csv": 60, "tsv": 40, "jsonl": 40}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make(tmp_path_factory.mktemp("fuzzing"))


@pytest.mark.thirds
@pytest.mark.parametrize("name", FUZZERS)
@pytest.mark.filterwarnings("ignore")
def test_48_fuzzed(made, name):
    steps = FUZZERS[name](random.Random(0), made)
    for _ in range(STEPS[name]):
        next(steps)
    steps.close()
