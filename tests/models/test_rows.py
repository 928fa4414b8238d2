"""Models speak rows as people have them: frames, dicts, lists of dicts; a few of them without Arrow, and the same to the bit."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import streamcut
from streamcut.errors import BadInputError, UsageError

N = 400


def frame(n: int = N, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "age": rng.normal(40.0, 10.0, n).round(2),
            "size": rng.normal(10.0, 8.0, n),
            "count": rng.integers(-2, 5, n),
            "flag": rng.random(n) < 0.5,
            "site": rng.choice(["a*b", "a", "x=y", "back\\slash", "NA", "ä"], n),
        }
    )
    rows["bought"] = np.where(rows.age / 20 + rows.flag + (rows.site == "a") + rng.normal(size=n) > 2.8, "yes", "no")
    for name in ("age", "size", "site"):
        rows[name] = rows[name].mask(rng.random(n) < 0.1)
    return rows


def trained(**convert: Any) -> Any:
    roles = {"categorical": "count,flag,site", "numeric": "age,size:bin4", "cross": "site*flag"}
    return streamcut.train(frame(), label="bought", loss="logistic", convert={**roles, **convert})


def test_arrays_are_features():
    model = trained()
    X = np.random.default_rng(0).normal(size=(30, model.n_features))
    for given in (X, sp.csr_array(X), X.tolist()):
        assert set(model.predict(given)) == {"yes", "no"}
        np.testing.assert_allclose(model.predict_proba(given), model.probabilities_of(X @ model.weights + model.intercept))
    with pytest.raises(BadInputError, match=f"the model has {model.n_features} features"):
        model.predict(X[:, 1:])
    numbers = streamcut.train((X, np.sign(X[:, 0])))
    np.testing.assert_array_equal(numbers.predict(pd.DataFrame(X)), numbers.predict(X))
    with pytest.raises(UsageError, match="no probabilities"):
        numbers.predict_proba(X)


def test_what_was_prepared_is_no_part_of_a_model():
    model, row = trained(), frame(1, 6).drop(columns="bought").to_dict("records")[0]
    before = len(pickle.dumps(model))
    expected = model.decision_function(row)
    model.decision_function([row] * 20)
    assert model.recipe.prepared
    assert len(pickle.dumps(model)) == before
    again = pickle.loads(pickle.dumps(model))
    assert again.recipe == model.recipe
    assert not again.recipe.prepared
    np.testing.assert_array_equal(again.decision_function(row), expected)
