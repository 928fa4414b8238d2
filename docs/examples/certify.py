"""How far is a model of scikit-learn from its optimum? Read the rows a few times, and know."""

import numpy as np
from sklearn.linear_model import LogisticRegression, SGDClassifier

import streamcut

random = np.random.default_rng(0)
X = random.normal(size=(5000, 40)) * np.logspace(0, 1.5, 40)  # features of very different scales
y = X @ (random.normal(size=40) / np.logspace(0, 1.5, 40)) + random.normal(size=5000) > 0

for model in (
    LogisticRegression(max_iter=5000),
    LogisticRegression(max_iter=20),  # ends early, with a warning that is easy to miss
    SGDClassifier(loss="log_loss", alpha=1e-3, max_iter=50, random_state=0),
):
    result = streamcut.certify(model.fit(X, y), (X, y), passes=10)
    certificate = result.certificate
    print(f"{type(model).__name__}: its objective is {certificate.primal:.2f}, and no weights reach less than", end=" ")
    print(f"{certificate.lower_bound:.2f}: between {result.at_least:.2%} and {certificate.gap / certificate.primal:.2%} too high")
