"""Models: scores and labels, files that notice damage, and the export that LIBLINEAR itself reads."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from streamcut import load_model
from streamcut.errors import NotFoundError


class Bomb:
    def __reduce__(self):
        return pytest.fail, ("unpickled",)


pytestmark = pytest.mark.smoke


def test_a_pickle_is_no_model_and_is_not_unpickled(tmp_path):
    (tmp_path / "m.npz").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(NotFoundError, match="not a streamcut model"):
        load_model(tmp_path / "m.npz")


def test_other_files_are_no_models(tmp_path):
    np.savez(tmp_path / "arrays.npz", a=np.arange(3))
    (tmp_path / "text").write_text("solver_type L2R_L1LOSS_SVC_DUAL\n")
    for name in ("arrays.npz", "text", "missing", "."):
        with pytest.raises(NotFoundError):
            load_model(tmp_path / name)
