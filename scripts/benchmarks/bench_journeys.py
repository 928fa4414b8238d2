"""What newcomers type, next to what they would type elsewhere: commands, seconds, log loss on rows that nobody has seen.

  python scripts/benchmarks/bench_journeys.py [--only flights news] [--rows 300000] [--repeat 1]

flights   a CSV table: the first 300,000 flights of flights3m, more than 15 minutes late or not, the latest fifth held out.
news      texts: 20 newsgroups. The data are tf-idf weights, from which counts of words follow exactly (the rarest word of a text
          is counted once), and the texts are made of these: each word as often as it is counted, in random order. They say no
          more than the counts do; runs of words mean nothing.

Each line is a program of its own: processor seconds (its threads' among them) and seconds by the clock from an empty process
to the measure on the held-out rows, imports and reading included, the best of --repeat. Peers: ten lines of scikit-learn;
LightGBM and Vowpal Wabbit with their defaults, where they are installed. Ours chooses C on a part of its own rows.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import lzma
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

DATA = Path(os.environ.get("STREAMCUT_DATA", Path(__file__).parents[3] / "shared" / "data"))

# what is installed has bytecode; without this variable a checkout has, too, after its first command
_INSTALLED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

OURS = {
    "flights": [
        ["fit", "train.csv", "--label", "late", "--time-column", "date", "--time", "date:hour,weekday", "-o", "m.npz", "-q"],
        ["evaluate", "m.npz", "test.csv"],
    ],
    "news": [["fit", "train", "-o", "m.npz", "-q"], ["evaluate", "m.npz", "test"]],
}
_FLIGHTS = """
import sys, pandas as pd
from sklearn.metrics import accuracy_score, log_loss
def read(name):
    rows = pd.read_csv(name, parse_dates=["date"])
    rows["hour"], rows["weekday"] = rows.date.dt.hour, rows.date.dt.weekday
    return rows[["hour", "weekday", "distance", "origin", "destination"]], rows.late
(X, y), (T, t) = read("train.csv"), read("test.csv")
"""
_NEWS = """
import numpy as np
from sklearn.datasets import load_files
from sklearn.metrics import accuracy_score, log_loss
train, test = load_files("train", encoding="utf-8"), load_files("test", encoding="utf-8")
X, y, T, t = train.data, train.target, test.data, test.target
"""
_SAID = """
print("log loss", log_loss(t, p), "accuracy", accuracy_score(t, p.argmax(axis=1)))
"""
PEERS = {
    "flights": {
        "scikit-learn": _FLIGHTS + """
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
words = OneHotEncoder(handle_unknown="ignore"), ["hour", "weekday", "origin", "destination"]
columns = ColumnTransformer([("words", *words), ("numbers", StandardScaler(), ["distance"])])
p = make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(X, y).predict_proba(T)
""" + _SAID,
        "lightgbm": _FLIGHTS + """
import lightgbm
for name in ("hour", "weekday", "origin", "destination"):
    kinds = pd.CategoricalDtype(sorted({*X[name]} | {*T[name]}))
    X[name], T[name] = X[name].astype(kinds), T[name].astype(kinds)
p = lightgbm.LGBMClassifier(verbose=-1).fit(X, y).predict_proba(T)
""" + _SAID,
        "vowpalwabbit": _FLIGHTS + """
import numpy as np
from vowpalwabbit import pyvw
def lines(X, y):
    for hour, weekday, distance, origin, destination, late in zip(*(X[name] for name in X), y):
        yield f"{2 * late - 1} | h={hour} w={weekday} o={origin} d={destination} distance:{distance / 1000}"
model = pyvw.Workspace("--loss_function logistic --link logistic --quiet")
for line in lines(X, y):
    model.learn(line)
p = np.array([model.predict(line) for line in lines(T, t)])
p = np.column_stack([1 - p, p])
""" + _SAID,
    },
    "news": {
        "scikit-learn logistic": _NEWS + """
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
p = make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(C=10, max_iter=1000)).fit(X, y).predict_proba(T)
""" + _SAID,
        "scikit-learn LinearSVC": _NEWS + """
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
found = make_pipeline(TfidfVectorizer(sublinear_tf=True), LinearSVC()).fit(X, y).predict(T)
print("log loss", float("nan"), "accuracy", accuracy_score(t, found))
""",
        "vowpalwabbit": _NEWS + """
from vowpalwabbit import pyvw
model = pyvw.Workspace("--oaa 20 --loss_function logistic --probabilities --quiet")
for text, label in zip(X, y):
    model.learn(f"{label + 1} | {text}")
p = np.array([model.predict(f"| {text}") for text in T])
p /= p.sum(axis=1, keepdims=True)
""" + _SAID,
    },
}  # fmt: skip


def flights(folder: Path, rows: int) -> None:
    import pyarrow.compute as pc
    import pyarrow.csv
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(DATA / "flights3m" / "flights-3m.parquet").slice(0, rows)
    late = pc.cast(pc.greater(table["delay"], 15), "int8")
    table = table.select(["date", "distance", "origin", "destination"]).append_column("late", late)
    for name, part in (("train.csv", table.slice(0, 4 * rows // 5)), ("test.csv", table.slice(4 * rows // 5))):
        pyarrow.csv.write_csv(part, folder / name)


def news(folder: Path, rows: int) -> None:
    r = np.random.default_rng(0)
    found = {part: list(_weights(part)) for part in ("train", "test")}
    frequency = np.bincount(np.concatenate([words for _, words, _ in found["train"]]))
    rarity = np.log((1 + len(found["train"])) / (1 + frequency)) + 1.0
    for part, texts in found.items():
        for number, (label, words, weights) in enumerate(texts):
            plain = weights / rarity[words]
            counts = np.rint(np.exp(plain / plain.min() - 1.0)).astype(int) if len(plain) else plain.astype(int)
            place = folder / part / f"group{label}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{number:05}.txt").write_text(" ".join(f"w{word}" for word in r.permutation(np.repeat(words, counts))))


def _weights(part: str) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    with lzma.open(DATA / "news20_bydate" / f"{part}.svm.xz", "rt") as lines:
        for line in lines:
            label, *entries = line.split()
            words, weights = zip(*(entry.split(":") for entry in entries), strict=True) if entries else ((), ())
            yield label, np.array(words, dtype=int), np.array(weights, dtype=float)


def measured(commands: list[list[str]], folder: Path, repeat: int) -> tuple[float, float, str]:
    """(processor seconds, seconds, what the last one printed) of the best of some runs."""
    best = (float("inf"), float("inf"), "")
    for _ in range(repeat):
        (folder / "m.npz").unlink(missing_ok=True)
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        for command in commands:
            done = subprocess.run(command, cwd=folder, env=_INSTALLED, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{command}: {done.stderr}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = min(best, (spent, time.monotonic() - began, done.stdout))
    return best


def said(text: str) -> tuple[str, str]:
    """(log loss, accuracy) of what a program printed."""
    words = text.split()
    return tuple(f"{float(words[k + 1 + (name == 'log')]):.5f}" for name in ("log", "accuracy") for k in [words.index(name)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(OURS), default=list(OURS))
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--repeat", type=int, default=1)
    chosen = parser.parse_args()
    out = csv.writer(sys.stdout, delimiter="\t", lineterminator="\n")
    out.writerow(["journey", "who", "processor s", "s", "log loss", "accuracy"])
    for name in chosen.only:
        with TemporaryDirectory() as place:
            folder = Path(place)
            {"flights": flights, "news": news}[name](folder, chosen.rows)
            runs = {"streamcut": [[sys.executable, "-m", "streamcut", *command] for command in OURS[name]]}
            for who, text in PEERS[name].items():
                if importlib.util.find_spec({"scikit-learn": "sklearn"}.get(who.split(" ")[0], who)) is not None:
                    runs[who] = [[sys.executable, "-c", text]]
            for who, commands in runs.items():
                spent, seconds, text = measured(commands, folder, chosen.repeat)
                out.writerow([name, who, f"{spent:.2f}", f"{seconds:.2f}", *said(text)])
                sys.stdout.flush()
            for command in OURS[name]:
                print(f"  streamcut {' '.join(command)}")


if __name__ == "__main__":
    main()
