"""A table with words, numbers and gaps: from a CSV file to probabilities of new rows."""

import csv
import tempfile
from pathlib import Path

import numpy as np

import streamcut

random = np.random.default_rng(0)
LIKED = {"games": 1.5, "news": 0.0, "mail": -1.5}

with tempfile.TemporaryDirectory() as folder:
    clicks = Path(folder, "clicks.csv")
    with clicks.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["site", "age", "click"])
        for _ in range(2000):
            site, age = str(random.choice(list(LIKED))), int(random.integers(16, 80))
            clicked = random.random() < 1 / (1 + np.exp(-LIKED[site] + 0.05 * (age - 40)))
            writer.writerow([site, "" if random.random() < 0.1 else age, "yes" if clicked else "no"])

    fitted = streamcut.fit(clicks, label="click")  # makes features, chooses C on held-out rows, trains on all rows
    model = fitted.model
    print(model.certificate.in_words())
    for weight in streamcut.weights(model, top=3):
        print(f"  {weight.name}: {weight.weight:+.2f}")
    new = [{"site": "games", "age": 20}, {"site": "mail", "age": 70}, {"site": "games"}]  # the last has no age
    print(model.predict_proba(new).round(2))
