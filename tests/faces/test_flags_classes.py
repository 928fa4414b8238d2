"""Options of other programs for several classes, and elastic nets: which of ours they become, and what is refused."""

from __future__ import annotations

import pytest
from kit.flags_classes import several

from streamcut.errors import UsageError

ONE_VS_REST = {"task": "multiclass", "strategy": "one-vs-rest"}


@pytest.mark.parametrize(
    ("tool", "text", "wanted"),
    [
        ("liblinear", "-s 0 -c 2", {**ONE_VS_REST, "loss": "logistic", "C": 2.0, "bias": 0.0}),
        ("liblinear", "-s 7 -B 1", {**ONE_VS_REST, "loss": "logistic", "C": 1.0, "bias": 1.0}),
        ("liblinear", "-s 2", {**ONE_VS_REST, "loss": "squared-hinge", "C": 1.0, "bias": 0.0}),
        ("liblinear", "-s 3", {**ONE_VS_REST, "C": 1.0, "bias": 0.0}),
        ("liblinear", "-s 4 -c 3", {"task": "multiclass", "C": 3.0, "bias": 0.0}),
        ("liblinear", "-s 5 -c 2", {**ONE_VS_REST, "loss": "squared-hinge", "C": 200.0, "l1": 100.0, "bias": 0.0}),
        ("liblinear", "-s 6", {**ONE_VS_REST, "loss": "logistic", "C": 100.0, "l1": 100.0, "bias": 0.0}),
        ("vw", "--oaa 4 --loss_function logistic --l2 0.01", {**ONE_VS_REST, "loss": "logistic", "C": 1.0, "bias": 1.0}),
        ("vw", "--oaa 4 --loss_function hinge --l2 0.01 --l1 0.02", {**ONE_VS_REST, "C": 1.0, "l1": 2.0, "bias": 1.0}),
        ("sklearn", "LinearSVC(C=2)", {**ONE_VS_REST, "loss": "squared-hinge", "C": 2.0, "bias": 1.0}),
        ("sklearn", 'LinearSVC(multi_class="crammer_singer", C=2)', {"task": "multiclass", "C": 2.0, "bias": 1.0}),
        ("sklearn", "LogisticRegression(fit_intercept=False)", {"task": "multiclass", "loss": "softmax", "C": 1.0, "bias": 0.0}),
        (
            "sklearn",
            'LogisticRegression(multi_class="ovr", fit_intercept=False)',
            {**ONE_VS_REST, "loss": "logistic", "C": 1.0, "bias": 0.0},
        ),
        (
            "sklearn",
            "OneVsRestClassifier(LogisticRegression(C=3, fit_intercept=False))",
            {**ONE_VS_REST, "loss": "logistic", "C": 3.0, "bias": 0.0},
        ),
        (
            "sklearn",
            "OneVsRestClassifier(LogisticRegression(C=3))",
            {**ONE_VS_REST, "loss": "logistic", "C": 3.0, "intercept": "free"},
        ),
        (
            "sklearn",
            'SGDClassifier(loss="log_loss", alpha=0.01, penalty="elasticnet", l1_ratio=0.5, fit_intercept=False)',
            {**ONE_VS_REST, "loss": "logistic", "C": 2.0, "l1": 1.0, "bias": 0.0},
        ),
        (
            "sklearn",
            'LogisticRegression(penalty="elasticnet", l1_ratio=0.2, C=4, fit_intercept=False)',
            {"task": "multiclass", "loss": "softmax", "C": 5.0, "l1": 0.25, "bias": 0.0},
        ),
    ],
)
def test_several_classes(tool, text, wanted):
    assert several(tool, text, classes=4, rows=100) == wanted


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("liblinear", "-s 0 -w1 2"),
        ("sklearn", "LinearSVC(class_weight={1: 2.0})"),
        ("sklearn", 'LinearSVC(penalty="l1")'),
        ("sklearn", "LogisticRegression(l1_ratio=1.0, fit_intercept=False)"),
        ("vw", "--oaa 4 --l2 0.01"),
    ],
)
def test_what_several_classes_do_not_have_is_refused(tool, text):
    with pytest.raises(UsageError):
        several(tool, text, classes=4, rows=100)


def test_elastic_nets_of_two_classes_and_numbers():
    found = several("sklearn", "ElasticNet(alpha=0.1, l1_ratio=0.5, fit_intercept=False)", rows=100)
    assert found == {"task": "regression", "C": pytest.approx(0.2), "l1": 1.0, "bias": 0.0}
    found = several("sklearn", 'LogisticRegression(penalty="elasticnet", l1_ratio=0.2, C=4, fit_intercept=False)')
    assert found == {"loss": "logistic", "C": 5.0, "l1": 0.25, "bias": 0.0}
    found = several("vw", "--l2 0.01 --l1 0.001 --noconstant", rows=100)
    assert found == {"task": "regression", "C": 2.0, "l1": 0.1, "bias": 0.0}
