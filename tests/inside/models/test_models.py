"""Models: scores and labels, files that notice damage, and the export that LIBLINEAR itself reads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from inside.kit.models import make_model
from streamcut import export, save_model

pytestmark = pytest.mark.smoke


@pytest.fixture
def saved(tmp_path):
    save_model(make_model(), tmp_path / "m.npz")
    return tmp_path / "m.npz"


@pytest.mark.parametrize("point", ["model_tmp", "model_fsync", "model_rename"])
def test_a_kill_leaves_the_old_model(saved, point):
    before = saved.read_bytes()
    code = "import sys\nfrom streamcut.models.files import *\nsave_model(load_model(sys.argv[1]), sys.argv[1])"
    environment = {**os.environ, "STREAMCUT_FAILPOINT": f"{point}:1:kill"}
    done = subprocess.run([sys.executable, "-P", "-c", code, str(saved)], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    assert saved.read_bytes() == before


@pytest.mark.parametrize("bias", [0.0, 1.0, 0.25])
@pytest.mark.parametrize("labels", [(-1.0, 1.0), (1.0, -1.0), (3.0, 7.0)])
def test_liblinear_gives_the_same_labels_and_scores(tmp_path, bias, labels):
    from liblinear.liblinearutil import load_model as load_liblinear
    from liblinear.liblinearutil import predict

    rng = np.random.default_rng(3)
    X = sp.random_array((60, 12), density=0.4, rng=rng, format="csr", data_sampler=rng.normal)
    model = make_model(d=12, bias=bias, labels=labels, weights=rng.normal(size=12) / 3)
    export(model, tmp_path / "m.txt")
    said, _, values = predict([], sp.csr_matrix(X), load_liblinear(str(tmp_path / "m.txt")), "-q")
    np.testing.assert_array_equal(said, model.predict(X))
    np.testing.assert_allclose(np.array(values)[:, 0], model.decision_function(X), rtol=1e-12, atol=1e-12)
    assert len(set(said)) == 2
