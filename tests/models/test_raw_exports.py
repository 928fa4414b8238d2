"""Exports score raw rows as we do, to 1e-6, or are refused: numbers, categories, missing values, values that nobody had seen."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest

import streamcut
from streamcut.errors import UsageError

ROWS = int(os.environ.get("STREAMCUT_PARITY_ROWS", "1000"))
SCORERS = Path(__file__).resolve().parents[2] / "docs" / "scorers"
WORDS = ["a", "it's", "x=y", "b*c", 'say "no"', "back\\slash", "NA", "nan", "ä€𝄞", " a ", "-- ;", "constructor", "new\nline"]
ROLES = {"categorical": 'count,half,flag,site,it\'s "x"', "numeric": "age,size,on", "standardise": True}
BINS = {"categorical": 'count,half,flag,site,it\'s "x"', "numeric": "age:bin5,size,on", "cross": ["site*flag", "site*count*half"]}


def frame(n: int, seed: int, *, unseen: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    more = ["z", "A", "'; DROP TABLE rows; --"] if unseen else []
    rows = pd.DataFrame(
        {
            "age": rng.normal(40.0, 10.0, n).round(1),
            "size": rng.lognormal(5.0, 2.0, n),
            "on": rng.random(n) < 0.3,
            "count": rng.integers(-3, 9 if unseen else 5, n).astype(float),
            "half": rng.integers(0, 9 if unseen else 6, n) / 4,
            "flag": pd.array(rng.random(n) < 0.5, dtype="boolean"),
            "site": rng.choice([*WORDS, *more], n),
            'it\'s "x"': rng.choice(["u", "v", "w", *more], n),
        }
    )
    for name in ("age", "size", "count", "half", "flag", "site"):
        rows.loc[rng.random(n) < 0.08, name] = None
    rows["site"] = rows.site.mask(rng.random(n) < 0.02, "")
    return rows


def scores_of(rows: pd.DataFrame, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    site = rows.site.map({word: i for i, word in enumerate(WORDS)}).fillna(-1).to_numpy()
    flag = rows.flag.fillna(False).to_numpy(bool)
    return np.sin(site) + flag + rows.age.fillna(20.0).to_numpy() / 30 + rng.normal(size=len(rows))


@cache
def model_of(kind: str) -> Any:
    rows = frame(600, 0)
    score = scores_of(rows, 1)
    roles, options = ROLES, {"loss": "logistic"}
    label: Any = np.where(score > 2.0, "it's so", "no")
    if kind in ("softmax", "one-vs-rest", "classes"):
        label = np.where(score > 2.5, "high", np.where(score > 1.5, "mid", "low"))
        options = {"softmax": {"loss": "softmax"}, "one-vs-rest": {"loss": "logistic", "strategy": "one-vs-rest"}}.get(kind, {})
        options = {"task": "multiclass", **options}
    elif kind == "counts":
        label, options = np.round(np.abs(score)), {"task": "regression", "loss": "poisson"}
    elif kind == "numbers":
        label, options = score, {"task": "regression"}
    elif kind == "bins and crosses":
        roles = BINS
    elif kind == "zero":
        roles = {**ROLES, "missing": "zero"}
    elif kind == "hinge":
        options = {"loss": "hinge"}
    elif kind == "no missing":
        rows["y"] = label
        rows = rows[rows.notna().all(axis=1) & (rows.site != "")].reset_index(drop=True)
        return streamcut.train(rows, label="y", loss="logistic", convert={**ROLES, "missing": "error"})
    return streamcut.train(rows.assign(y=label), label="y", convert=roles, **options)


KINDS = ["usual", "hinge", "bins and crosses", "zero", "no missing", "softmax", "one-vs-rest", "classes", "counts", "numbers"]


def rows_for(kind: str) -> pd.DataFrame:
    rows = frame(ROWS, 7, unseen=True)
    return rows[rows.notna().all(axis=1) & (rows.site != "")].reset_index(drop=True) if kind == "no missing" else rows


def ours(model: Any, rows: pd.DataFrame) -> tuple[list[Any], np.ndarray]:
    """(labels, or answers; probabilities of all classes where there are any, else scores)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels, scores = streamcut.predict(model, rows).tolist(), np.asarray(streamcut.predict(model, rows, output="scores"))
    if model.task == "regression":
        return labels, np.array(labels)
    if not model.has_probabilities:
        return labels, scores
    found = model.probabilities_of(scores)
    return labels, found if found.ndim == 2 else np.column_stack([1.0 - found, found])


def by_scikit_learn(model: Any, rows: pd.DataFrame, folder: Path) -> tuple[list[Any], np.ndarray]:
    streamcut.export(model, folder / "m.joblib")
    found = joblib.load(folder / "m.joblib")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = found.predict(rows)
        if model.task == "regression":
            return labels.tolist(), labels
        return labels.tolist(), found.predict_proba(rows) if model.has_probabilities else found.decision_function(rows)


def by_onnx(model: Any, rows: pd.DataFrame, folder: Path) -> tuple[list[Any], np.ndarray]:
    runtime = pytest.importorskip("onnxruntime")
    streamcut.export(model, folder / "m.onnx")
    session = runtime.InferenceSession(folder / "m.onnx", providers=["CPUExecutionProvider"])
    given = {}
    for each in session.get_inputs():
        column = rows[each.name]
        texts = each.type == "tensor(string)"
        given[each.name] = (
            column.fillna("").to_numpy(object) if texts else column.astype("Float64").to_numpy(float, na_value=np.nan)
        )
    labels, *rest = session.run(None, given)
    return labels.tolist(), rest[0] if rest else labels


def _of_sql(model: Any, found: pd.DataFrame) -> tuple[list[Any], np.ndarray]:
    if model.task == "regression":
        return found.predicted_answer.tolist(), found.predicted_answer.to_numpy()
    what = "probability" if model.has_probabilities else "score"
    columns = [name for name in found if name.startswith(f"predicted_{what}")]
    values = found[columns].to_numpy(float)
    if len(columns) == 1:
        values = np.column_stack([1.0 - values, values]) if model.has_probabilities else values[:, 0]
    return found.predicted_label.tolist(), values


def by_duckdb(model: Any, rows: pd.DataFrame, folder: Path) -> tuple[list[Any], np.ndarray]:
    duckdb = pytest.importorskip("duckdb")
    streamcut.export(model, folder / "m.sql")
    with duckdb.connect() as connection:
        connection.register("given", rows)
        connection.execute('CREATE TABLE "rows" AS SELECT * FROM given')
        return _of_sql(model, connection.execute((folder / "m.sql").read_text("utf-8")).df())


def by_sqlite(model: Any, rows: pd.DataFrame, folder: Path) -> tuple[list[Any], np.ndarray]:
    streamcut.export(model, folder / "m.sql")
    with sqlite3.connect(":memory:") as connection:
        try:
            connection.execute("SELECT exp(1.0)")
        except sqlite3.OperationalError:
            pytest.skip("this SQLite has no mathematical functions")
        rows.to_sql("rows", connection, index=False)
        return _of_sql(model, pd.read_sql_query((folder / "m.sql").read_text("utf-8"), connection))


def _scored(command: list[str], model: Any, rows: pd.DataFrame, folder: Path) -> tuple[list[Any], np.ndarray]:
    streamcut.export(model, folder / "m.json")
    lines = rows.to_json(orient="records", lines=True, double_precision=15)
    done = subprocess.run(
        [*command, str(folder / "m.json")], input=lines, capture_output=True, text=True, encoding="utf-8", check=False
    )
    if done.returncode:
        raise ValueError(done.stderr)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    labels = [each["label"] for each in found]
    if model.task == "regression":
        return labels, np.array(labels)
    values = np.array([each["probabilities"] or each["scores"] for each in found])
    return labels, values[:, 0] if values.shape[1] == 1 else values


def by_javascript(model: Any, rows: pd.DataFrame, folder: Path) -> tuple[list[Any], np.ndarray]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    return _scored([node, str(SCORERS / "score.js")], model, rows, folder)


@cache
def compiled() -> str:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler")
    import tempfile

    place = os.path.join(tempfile.mkdtemp(prefix="streamcut-scorer-"), "score")
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O2"]
    subprocess.run([compiler, *strict, "-o", place, str(SCORERS / "score.c"), "-lm"], check=True)
    return place


def by_c(model: Any, rows: pd.DataFrame, folder: Path) -> tuple[list[Any], np.ndarray]:
    return _scored([compiled()], model, rows, folder)


def by_compact(model: Any, rows: pd.DataFrame, folder: Path) -> tuple[list[Any], np.ndarray]:
    streamcut.export(model, folder / "m.npz")
    return ours(streamcut.load_model(folder / "m.npz"), rows)


def by_mlflow(model: Any, rows: pd.DataFrame, folder: Path) -> tuple[list[Any], np.ndarray]:
    pytest.importorskip("mlflow")
    from streamcut.exports import mlflow

    mlflow.save_model(model, folder / "m")
    loaded = mlflow.mlflow.pyfunc.load_model(str(folder / "m"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = loaded.predict(rows)
        if model.task == "regression":
            return labels.tolist(), labels
        found = loaded.predict(rows, params={"output": "probabilities" if model.has_probabilities else "scores"})
    return labels.tolist(), np.column_stack([1.0 - found, found]) if model.has_probabilities and found.ndim == 1 else found


WAYS: dict[str, tuple[Callable[..., tuple[list[Any], np.ndarray]], float]] = {
    "scikit-learn": (by_scikit_learn, 1e-9),
    "ONNX": (by_onnx, 1e-9),
    "DuckDB": (by_duckdb, 1e-9),
    "SQLite": (by_sqlite, 1e-9),
    "JavaScript": (by_javascript, 1e-9),
    "C": (by_c, 1e-9),
    "MLflow": (by_mlflow, 0.0),
    "compact": (by_compact, 1e-6),  # weights as float32
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_raw_rows_have_the_same_answers(way, kind, tmp_path):
    model, rows = model_of(kind), rows_for(kind)
    by, bound = WAYS[way]
    labels, values = ours(model, rows)
    found, theirs = by(model, rows, tmp_path)
    off = np.abs(theirs - values) / np.maximum(1.0, np.abs(values))
    print(f"{way:14}{kind:18}{len(rows):7,} rows, off by {off.max():.1e}")
    assert len(found) == len(labels) == len(rows) > ROWS // 3
    assert off.max() <= bound
    if model.task == "regression":
        np.testing.assert_allclose(found, labels, rtol=bound, atol=bound)
    elif way != "compact":
        assert found == labels


@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("compact",)])
def test_a_column_that_is_not_there_is_an_error_by_name(way, tmp_path):
    rows = rows_for("usual").drop(columns="site")
    with pytest.raises(Exception, match="site"):
        WAYS[way][0](model_of("usual"), rows, tmp_path)


@pytest.mark.parametrize("way", ["scikit-learn", "ONNX", "DuckDB", "SQLite", "JavaScript", "C"])
def test_where_missing_values_were_refused_there_is_no_answer(way, tmp_path):
    rows = rows_for("no missing").head(5)
    for name, value in (("age", None), ("site", ""), ("count", None)):
        bad = rows.copy()
        bad.loc[2, name] = value
        if way in ("scikit-learn", "JavaScript", "C"):
            with pytest.raises(Exception, match=name):
                WAYS[way][0](model_of("no missing"), bad, tmp_path)
            continue
        _, values = WAYS[way][0](model_of("no missing"), bad, tmp_path)
        assert np.isnan(values[2]).all()
        assert np.isfinite(np.delete(values, 2, axis=0)).all()


def test_sqlite_gives_no_answer_for_values_of_other_types(tmp_path):
    """Its columns may hold any type of value where they are declared without one."""
    model, rows = model_of("usual"), rows_for("usual").head(1).fillna({"age": 1.0, "count": 1.0, "half": 1.0, "flag": True})
    usual = [value.item() if hasattr(value, "item") else value for value in rows.iloc[0].tolist()]
    streamcut.export(model, tmp_path / "m.sql")
    with sqlite3.connect(":memory:") as connection:
        names = ", ".join('"' + name.replace('"', '""') + '"' for name in rows)
        connection.execute(f"CREATE TABLE rows ({names})")
        for name, value in (("age", 1), ("age", "old"), ("count", "3"), ("flag", "true"), ("site", 3), ("half", "")):
            given = [value if each == name else old for each, old in zip(rows, usual, strict=True)]
            connection.execute(f"INSERT INTO rows VALUES ({', '.join('?' * len(given))})", given)
        found = pd.read_sql_query((tmp_path / "m.sql").read_text("utf-8"), connection)
    assert found.predicted_score.notna().tolist() == [True, False, False, False, False, False]


def test_a_pipeline_needs_nothing_of_ours(tmp_path):
    model, rows = model_of("usual"), rows_for("usual")
    streamcut.export(model, tmp_path / "m.joblib")
    rows.to_pickle(tmp_path / "rows.pkl")
    code = (
        "import sys; sys.modules['streamcut'] = None\nimport joblib, json, pandas\n"
        f"rows = pandas.read_pickle({str(tmp_path / 'rows.pkl')!r})\n"
        f"print(json.dumps(joblib.load({str(tmp_path / 'm.joblib')!r}).predict(rows).tolist()))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ours(model, rows)[0]


def test_a_pipeline_that_needs_streamcut_says_so(tmp_path, caplog, run):
    streamcut.export(model_of("usual"), tmp_path / "m.joblib")
    assert not caplog.records
    streamcut.export(model_of("bins and crosses"), tmp_path / "m.joblib")
    assert "needs streamcut wherever it is loaded: scikit-learn has no transformer for the cross site*flag" in caplog.text


TEXTS = pd.DataFrame({"note": ["good rows of words", "bad rows and more", "nothing at all"] * 20, "x": np.arange(60.0)})
DAYS = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=60, freq="D"), "x": np.arange(60.0)})


@pytest.mark.parametrize(
    ("rows", "convert", "named"),
    [
        (TEXTS, {"text": "note"}, r"column 'note' \(text: words, tf-idf\)"),
        (DAYS, {"time": "day"}, r"column 'day' \(time: .*\)"),
        (DAYS, {"categorical": "day"}, r"column 'day' \(a category of type time\)"),
        (TEXTS, {"text": "note", "hash_bits": 8}, r"features of 2 columns, hashed into 2\^8"),
    ],
)
def test_what_cannot_be_said_is_refused_by_name(rows, convert, named, tmp_path, caplog):
    model = streamcut.train(rows.assign(y=["a", "b", "b"] * 20), label="y", convert=convert)
    for to in ("onnx", "sql"):
        with pytest.raises(UsageError, match=f"{to} cannot say what becomes of {named}.*without.recipe"):
            streamcut.export(model, tmp_path / "m", to=to)
    assert not (tmp_path / "m").exists()
    streamcut.export(model, tmp_path / "m.json")
    said = json.loads((tmp_path / "m.json").read_text())
    assert said["columns"] is None
    assert said["recipe"]["table"]["columns"][0]["name"] == rows.columns[0]
    for command in ([shutil.which("node"), str(SCORERS / "score.js")] if shutil.which("node") else None, [compiled()]):
        if command:
            done = subprocess.run([*command, str(tmp_path / "m.json")], input="{}", capture_output=True, text=True, check=False)
            assert (done.returncode, "only streamcut knows how rows become features" in done.stderr) == (1, True)
    streamcut.export(model, tmp_path / "m.joblib")
    assert "needs streamcut" in caplog.text
    assert joblib.load(tmp_path / "m.joblib").predict(rows).tolist() == streamcut.predict(model, rows).tolist()


def test_names_that_a_program_cannot_tell_apart_are_refused(tmp_path):
    rows = frame(60, 0)[["age", "size"]].fillna(0.0).assign(y=["a", "b"] * 30)
    with pytest.raises(UsageError, match="sql: column 'age' and another differ in upper and lower case"):
        streamcut.export(streamcut.train(rows.rename(columns={"size": "AGE"}), label="y"), tmp_path / "m.sql")
    with pytest.raises(UsageError, match="onnx: a column cannot be called 'label'"):
        streamcut.export(streamcut.train(rows.rename(columns={"size": "label"}), label="y"), tmp_path / "m.onnx")
    large = pd.DataFrame({"id": np.array([2**53, 2**53 + 1] * 30), "x": np.arange(60.0), "y": ["a", "b"] * 30})
    model = streamcut.train(large, label="y", convert={"categorical": "id"})
    for to in ("sql", "onnx"):
        with pytest.raises(UsageError, match=f"{to} compares numbers as doubles, and column 'id' has categories that are one"):
            streamcut.export(model, tmp_path / "m", to=to)
