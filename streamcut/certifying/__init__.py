"""certify: how far a linear model, trained by any program, is from the optimum of its own problem.

A trainer that has stopped, or says "failed to converge", leaves one question: is the model good enough? Its problem

    min F(w, b) = ½‖w‖² + C Σ u_i ℓ(⟨w, x_i⟩ + b),    b free, none, or the weight of a bias feature,

answers it. One pass over the rows gives F(w₀, b₀); training that starts from these weights gives, pass by pass, a number that no
weights can go below, and better weights, whose F shows how far the model is from the optimum at least. Bounds hold for real
numbers, with all rounding counted (streamcut.foundation.rounding), and rows may be more than memory holds.

A scikit-learn default whose intercept has not converged:

    >>> import numpy, streamcut
    >>> from sklearn.linear_model import LogisticRegression
    >>> random = numpy.random.default_rng(0)
    >>> X = random.normal(size=(500, 8))
    >>> y = numpy.where(X[:, 0] + 0.5 * random.normal(size=500) > 1.0, 1, -1)
    >>> found = streamcut.certify(LogisticRegression().fit(X, y), (X, y))
    >>> found.at_least <= found.at_most < 1e-4
    True

A model that stopped far too early, and a better one:

    >>> early = LogisticRegression(solver="saga", max_iter=1, random_state=0)
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     found = streamcut.certify(early.fit(X, y), (X, y), passes=6)
    >>> found.certificate.lower_bound <= found.better.certificate.primal < found.certificate.primal
    True
    >>> labels = streamcut.predict(found.better, X)

With a scaler in front, the problem is in scaled features, and the subtracted means go into the free intercept.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> model = make_pipeline(StandardScaler(), LogisticRegression(C=10.0, tol=1e-8))
    >>> found = streamcut.certify(model.fit(X, y), (X, y), passes=1)
    >>> found.intercept, found.at_most < 1e-6
    ('free', True)

Several classes are one joint problem, as in multinomial logistic regression, or one problem per class, sharing the passes:

    >>> three = numpy.digitize(X[:, 0] + 0.5 * random.normal(size=500), [-0.5, 0.5])
    >>> found = streamcut.certify(LogisticRegression(tol=1e-8).fit(X, three), (X, three))
    >>> found.at_most < 1e-6
    True
    >>> from sklearn.svm import LinearSVC
    >>> found = streamcut.certify(LinearSVC().fit(X, three), (X, three))
    >>> [label for label, certificate, at_least in found.classes]
    [0.0, 1.0, 2.0]

Files record less than objects: LIBLINEAR's text has no C, JSON neither loss nor C. Give the command what is missing:

    streamcut verify liblinear.model train.zarr --C 1
    streamcut verify weights.json train.zarr --C 1 --loss logistic --intercept free

A bound far below F after a few passes, with `at_least` still small, is typical of features of very different sizes or of a
hinge: more passes narrow the gap, and scaling the features does so at once.

`problem.py` is the problem that a model claims to solve; `estimators.py` reads it from scikit-learn's objects, `model_files.py`
from files. `objective.py` computes F by one pass, `certify.py` trains from the given weights, `record.py` is the result.
"""
