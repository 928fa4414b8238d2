"""What tests/solvers/test_sequence.py and tests/inside/solvers/test_sequence.py share."""


def _bits(model):
    return model.weights.tobytes(), model.intercepts.tobytes(), model.transitions.tobytes(), model.certificate.primal
