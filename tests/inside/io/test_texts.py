"""Which words of texts become features, and which columns are taken for texts."""

from __future__ import annotations

import kit.shared.texts
import pandas as pd
import pytest

import streamcut
from streamcut.io.tables.text_words import ENGLISH

frame = kit.shared.texts.frame


def test_scoring_knows_the_words_that_are_left_and_counts_texts_of_which_it_knows_none(frame, tmp_path):
    model = streamcut.train(frame, label="y", loss="logistic", convert={"text": "text", "min_count": 4, "stop_words": "english"})
    names = model.recipe.names
    assert not [name for name in names if name.removeprefix("text=") in ENGLISH]
    told = streamcut.predict(model, frame, answer="scores")
    assert not told.unseen
    new = pd.DataFrame({"text": ["alpha never before", "nothing of this", ""], "city": ["Rome"] * 3})
    with pytest.warns(UserWarning, match="values of text that training did not see: 1 "):
        found = streamcut.predict(model, new, answer="scores")
    weight = dict(zip(names, model.weights, strict=False))
    assert found[0] - found[2] == pytest.approx(weight["text=alpha"])
    assert found[1] == found[2]
