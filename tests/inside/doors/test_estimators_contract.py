"""What scikit-learn's users rely on: parameters that are taken together, attributes, messages in the words of the estimator."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.svm import SVC

from streamcut.estimators import BudgetedKernelSVM, KernelSVM

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("weight", [None, "balanced", {0: 0.1, 1: 10.0}], ids=str)
def test_the_scale_of_a_kernel_does_not_count_weights(weight):
    A, b = make_classification(n_samples=100, n_features=10, weights=[0.833], random_state=2)
    expected = SVC(class_weight=weight).fit(A, b)._gamma
    assert KernelSVM(class_weight=weight).fit(A, b).gamma_ == pytest.approx(expected, rel=1e-9)
    sample_weight = np.linspace(0.0, 2.0, 100)
    assert KernelSVM(class_weight=weight).fit(A, b, sample_weight).gamma_ == pytest.approx(expected, rel=1e-9)
    assert BudgetedKernelSVM(class_weight=weight).fit(A, b).gamma_ == pytest.approx(expected, rel=1e-9)
