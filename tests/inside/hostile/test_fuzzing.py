"""The first steps of the fuzzer of Vowpal Wabbit's text (svmlight's: test_svmlight_fuzz); scripts/checks/fuzz.py goes on."""

from __future__ import annotations

import random

import pytest

from inside.kit.fuzzing import FUZZERS


@pytest.mark.filterwarnings("ignore")
def test_fuzzed_lines_of_vowpal_wabbit(tmp_path):
    steps = FUZZERS["vw"](random.Random(0), tmp_path)
    for _ in range(60):
        next(steps)
    steps.close()
