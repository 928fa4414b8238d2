"""Small trainings, one for each way through the code, whose weights are frozen in frozen_weights.json.

They are those of the laws, ended after a few passes, long before a stopping rule could end them, so nothing but the numbers
themselves is compared, and a few more. scripts/tools/freeze_weights.py writes the file; it uses no more of streamcut than `train`
and `rows`.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from laws.problems import KERNELS, ROWS, TRAININGS, Training

from streamcut import train

FILE = Path(__file__).with_suffix(".json")

_RBF = {"kernel": "rbf", "gamma": 0.7, "bias": 0.0}
_BUDGETED = {**_RBF, "budget": 12, "epochs": 2.0}
CASES = {
    **TRAININGS,
    **KERNELS,
    "cpa, few cuts, two lanes": Training("signs", {"solver": "cpa", "max_cuts": 5, "lanes": 2}),
    "break-even": Training("signs", {"loss": "prbep"}),
    "F1, cpa": Training("signs", {"loss": "f1", "solver": "cpa"}),
    "bsca, projection, classes": Training(
        "classes", {"task": "multiclass", "solver": "bsca", **_BUDGETED, "maintenance": "project"}
    ),
    "bsgd, removal, poly": Training(
        "signs",
        {"solver": "bsgd", **_BUDGETED, "kernel": "poly", "degree": 2, "coef0": 1.0, "maintenance": "remove"},
    ),
    "sbp, an intercept": Training("signs", {"solver": "sbp", "nu": 0.1, "epochs": 2.0, "kernel": "rbf", "gamma": 0.7}),
    "sampled-linear, sequences": Training(
        "sequences", {"task": "sequence", "solver": "sampled-linear", "kernel": "rbf", "gamma": 0.7, "samples": 25, "tol": 1e-4}
    ),
}
_NO_PASSES = {"smo", "bsca", "bsgd", "sbp", "sdca", "pegasos", "perceptron"}


def answer(name: str) -> list[float]:
    """Weights, intercepts, transitions or coefficients of the model that training `name` gives, one after another."""
    rows, options, _ = CASES[name]
    limit = {} if options.get("solver") in _NO_PASSES else {"max_passes": 6, "tol": 1e-12, "tol_relative": None}
    model = train(ROWS[rows].in_memory(shard_nnz=500), scheduler="sync", **{**options, **limit})
    scorer = getattr(model, "inner", getattr(model, "emissions", model))
    parts = [np.ravel(getattr(scorer, part)) for part in ("weights", "coefficients", "intercept") if hasattr(scorer, part)]
    parts += [np.ravel(model.transitions)] if getattr(model, "transitions", None) is not None else []
    return np.concatenate(parts).tolist()


def frozen() -> dict[str, list[float]]:
    """What the trainings gave when they were frozen."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}
