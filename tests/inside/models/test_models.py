"""Models: scores and labels, files that notice damage, and the export that LIBLINEAR itself reads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from inside.kit.models import make_model
from streamcut import export, save_model
from streamcut.errors import BadInputError, UsageError
from streamcut.models.certificate import Certificate, StopReason
from streamcut.models.files import describe_model, load_model

pytestmark = pytest.mark.smoke


@pytest.fixture
def saved(tmp_path):
    save_model(make_model(), tmp_path / "m.npz")
    return tmp_path / "m.npz"


def test_the_same_model_gives_the_same_bytes_at_any_time(tmp_path, monkeypatch):
    save_model(make_model(), tmp_path / "a.npz")
    monkeypatch.setattr("time.time", lambda: 2e9)
    monkeypatch.setattr("time.localtime", lambda *_: (2033, 5, 18, 3, 33, 20, 2, 138, 0))
    save_model(make_model(), tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_a_model_says_everything_of_itself(saved):
    told = describe_model(load_model(saved), saved)
    assert told["n_features"] == 7
    assert told["certificate"]["gap"] == 0.25
    assert told["labels"] == [-1.0, 1.0]
    json.dumps(told, allow_nan=False)


def test_a_model_is_never_half_written(saved, monkeypatch):
    import streamcut.foundation.files

    before = saved.read_bytes()
    for point in ("model_tmp", "model_fsync", "model_rename"):
        streamcut.foundation.files._hits.clear()
        monkeypatch.setenv("STREAMCUT_FAILPOINT", f"{point}:1:EIO")
        with pytest.raises(OSError, match="Input/output"):
            save_model(make_model(seed=1), saved)
        assert saved.read_bytes() == before
        assert [path.name for path in saved.parent.iterdir()] == ["m.npz"]


@pytest.mark.parametrize("point", ["model_tmp", "model_fsync", "model_rename"])
def test_a_kill_leaves_the_old_model(saved, point):
    before = saved.read_bytes()
    code = "import sys\nfrom streamcut.models.files import *\nsave_model(load_model(sys.argv[1]), sys.argv[1])"
    environment = {**os.environ, "STREAMCUT_FAILPOINT": f"{point}:1:kill"}
    done = subprocess.run([sys.executable, "-P", "-c", code, str(saved)], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    assert saved.read_bytes() == before


def test_scores_and_labels_of_arrays():
    model = make_model(d=3, labels=(2.0, 5.0), weights=np.array([1.0, -2.0, 0.0]), intercept=1.0)
    X = np.array([[1, 0, 9], [0, 1, 9], [1, 1, 9]])
    for form in (X, X.tolist(), sp.csr_array(X), sp.csc_matrix(X.astype(np.int8))):
        np.testing.assert_array_equal(model.decision_function(form), [2, -1, 0])
        np.testing.assert_array_equal(model.predict(form), [5, 2, 2])
    with pytest.raises(BadInputError, match="3 features"):
        model.decision_function(X[:, :2])
    with pytest.raises(BadInputError, match=r"row 1 \(0-based\) of X"):
        model.decision_function([[0, 0, 0], [np.nan, 0, 0]])


def test_the_certificate_in_words():
    certificate = Certificate(12.5, 12.25, 100.0, 1e-3, None, False, StopReason.MAX_PASSES)
    words = certificate.in_words()
    assert words.startswith("Not converged: the allowed number of passes")
    assert "12.5" in words
    assert "at most 2 % above the optimum" in words
    assert "0.0025" in words
    assert "at most 25 % above the optimum (0.025 in mean" in replace(certificate, lower_bound=10.0).in_words()  # 20 % of 12.5
    for low in (1.0, 0.0, -3.0):
        assert f"at most {(12.5 - low) / 100:.2g} in mean loss above" in replace(certificate, lower_bound=low).in_words()
    assert all(replace(certificate, stop_reason=reason).in_words() for reason in StopReason)


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


def test_a_label_that_liblinear_cannot_say_is_refused(tmp_path):
    with pytest.raises(UsageError, match="whole numbers"):
        export(make_model(labels=(0.5, 1.0)), tmp_path / "m.txt")
    assert not (tmp_path / "m.txt").exists()
