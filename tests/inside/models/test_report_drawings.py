"""Drawings of reports: their points are those of the history and of the measures, and their bytes the same every time."""

from __future__ import annotations

import numpy as np
import pytest
from kit.reports import arrays, trained
from sklearn.metrics import auc

import streamcut
from streamcut import evaluate, train
from streamcut.errors import UsageError
from streamcut.reports.convergence import convergence_plots
from streamcut.reports.drawing import save
from streamcut.reports.quality import quality


def test_convergence_is_drawn_from_the_history():
    model, _ = trained("linear")
    plots = convergence_plots(model.history)
    assert set(plots) == {"gap", "sides"}
    axes = plots["gap"][1].axes[0]
    assert axes.get_yscale() == "log"
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [line["gap"] / line["primal"] for line in model.history])
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), [line["passes"] for line in model.history])
    objective, bound = plots["sides"][1].axes[0].lines
    last = model.history[-1]
    np.testing.assert_allclose(objective.get_ydata()[0], (model.history[0]["primal"] - last["lower_bound"]) / last["primal"])
    np.testing.assert_allclose(bound.get_ydata()[0], (last["primal"] - model.history[0]["lower_bound"]) / last["primal"])


@pytest.mark.parametrize("weighted", [False, True])
def test_curves_are_those_of_the_measures(weighted):
    X, y = arrays(n=3000)
    data = streamcut.rows(X, y, weight=np.random.default_rng(0).uniform(0.1, 3, 3000) if weighted else None)
    model = train(data, max_passes=3)
    found = quality(model, data)
    assert found.measures == evaluate(model, data).measures()
    x, height = found.plots["roc"][1].axes[0].lines[-1].get_data()
    assert auc(x, height) == pytest.approx(found.measures["roc_auc"], abs=1e-3)
    recall, precision = found.plots["precision_recall"][1].axes[0].lines[-1].get_data()
    assert np.sum(np.diff(recall, prepend=0.0) * precision) == pytest.approx(found.measures["average_precision"], abs=1e-2)
    curves = found.curves
    at = np.flatnonzero(curves.score > 0)[-1]  # the threshold by which labels are given lies between two of these
    assert curves.f1[at] == pytest.approx(found.measures["f1"], abs=0.01)
    assert curves.called[-1] == pytest.approx(1.0)
    assert curves.false_positive_rate[-1] == pytest.approx(1.0)
    for bars in found.plots["scores"][1].axes[0].patches:
        assert bars.get_data().values.sum() == pytest.approx(1.0)
    one_class = quality(model, streamcut.rows(X[y == 1], y[y == 1]))
    assert one_class.plots == {}, "one class has no curves"


def test_reliability_and_residuals_are_of_every_row():
    X, y = arrays(n=3000)
    data = streamcut.rows(X, y)
    model = train(data, loss="logistic")
    axes = quality(model, data).plots["reliability"][1].axes[0]
    said, true = axes.lines[-1].get_data()
    p = model.probabilities_of(model.decision_function(X))
    bins = [(p >= low) & (p < low + 1 / 15) for low in np.arange(15) / 15]
    np.testing.assert_allclose(said, [p[some].mean() for some in bins if some.any()], rtol=1e-9)
    np.testing.assert_allclose(true, [y[some].mean() for some in bins if some.any()], rtol=1e-9)
    regression = train(data, task="regression")
    spread = quality(regression, data).plots["residual_histogram"][1].axes[0]
    assert sum(bar.get_height() for bar in spread.patches) == 3000
    middle = sum(bar.get_height() * (bar.get_x() + 0.5 * bar.get_width()) for bar in spread.patches) / 3000
    assert middle == pytest.approx(np.mean(y - regression.predict(X)), abs=0.03)


def test_the_same_plot_gives_the_same_bytes(tmp_path):
    model, _ = trained("smo")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for ending in (".svg", ".png"):
            save(convergence_plots(model.history)["gap"][1], tmp_path / name / f"p{ending}")
    for ending in (".svg", ".png"):
        assert (tmp_path / "a" / f"p{ending}").read_bytes() == (tmp_path / "b" / f"p{ending}").read_bytes()
    with pytest.raises(UsageError, match=r"\.svg or \.png"):
        save(convergence_plots(model.history)["gap"][1], tmp_path / "p.bmp")
