"""Several classes with an elastic net, with scales, warm starts and paths: certificates against a slow solver, and what must not
change the answer."""

from kit.shared.classes_penalty import KINDS, SEVERAL, WAYS, problem, routes

import streamcut
from streamcut import CheckpointOptions, train, verify
from streamcut.grids.selection import train_path


@routes
def test_every_model_of_a_path_has_its_certificate(route, tmp_path):
    kind, way = route
    along = {"bundle-dca": "l1", "uncached": "C"}[way]
    X, y, _ = problem(seed=6)
    data, models = streamcut.rows(X, y), []
    options = {**SEVERAL, **KINDS[kind], **WAYS[way], "tol": 1e-3, "tol_relative": None}
    path = {"Cs": (0.1, 1.0, 4.0)} if along == "C" else {"Cs": (1.0,), "l1s": (8.0, 2.0, 0.3)}
    last, tried = train_path(data, **path, **options, on_model=lambda model, _: models.append(model))
    for model, line in zip(models, tried, strict=True):
        assert model.converged
        assert verify(model, data).consistent
        cold = train(data, **options, C=line.C, l1=line.l1 or 0.0)
        for one, two in zip(model.certificates, cold.certificates, strict=True):
            assert one.lower_bound <= two.primal
            assert two.lower_bound <= one.primal
    assert last.weights.tobytes() == models[-1].weights.tobytes()
    keep = CheckpointOptions(str(tmp_path / "run"))
    for _ in range(2):  # the second time all of it comes from checkpoints
        again, _ = train_path(data, **path, **options, checkpoint=keep)
        assert again.weights.tobytes() == last.weights.tobytes()
        keep = CheckpointOptions(str(tmp_path / "run"), resume=True)
