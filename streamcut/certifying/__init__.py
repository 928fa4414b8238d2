"""certify: how far a linear model, whoever trained it, is from the optimum of its own problem.

A trainer that has stopped, or says "failed to converge", leaves one question: is the model good enough? Its problem

    min F(w, b) = ½‖w‖² + C Σ u_i ℓ(⟨w, x_i⟩ + b),    b free, none, or the weight of a bias feature,

answers it. One pass over the rows gives F(w₀, b₀), and a number that no weights can go below; where the loss is smooth the two
differ by ½‖∇F‖², so an exact optimum is known as one after a single pass. Each further pass raises the bound and looks for better
weights: their F says how far from the optimum the model is at least. Bounds hold for real numbers, with all rounding counted
(streamcut.foundation.rounding), and rows may be more than memory holds.

A default of scikit-learn's, whose intercept had not settled:

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

A scaler in front of it: the problem is one of scaled features, and what was subtracted is a part of the free intercept.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> model = make_pipeline(StandardScaler(), LogisticRegression(C=10.0, tol=1e-8))
    >>> found = streamcut.certify(model.fit(X, y), (X, y), passes=1)
    >>> found.intercept, found.at_most < 1e-6
    ('free', True)

Several classes are one problem, as in multinomial logistic regression, or one for each class, whose passes are the same:

    >>> three = numpy.digitize(X[:, 0] + 0.5 * random.normal(size=500), [-0.5, 0.5])
    >>> found = streamcut.certify(LogisticRegression(tol=1e-8).fit(X, three), (X, three))
    >>> found.at_most < 1e-6
    True
    >>> from sklearn.svm import LinearSVC
    >>> found = streamcut.certify(LinearSVC().fit(X, three), (X, three))
    >>> [label for label, certificate, at_least in found.classes]
    [0.0, 1.0, 2.0]

Files say less than objects: LIBLINEAR's text has no C, JSON neither loss nor C. The command asks for what is missing:

    streamcut certify liblinear.model train.zarr --C 1
    streamcut certify weights.json train.zarr --C 1 --loss logistic --intercept free

A bound far below F after a few passes, with little found above the optimum, is that of features that differ much in size, or of a
hinge: more passes narrow it, and scaled features do at once.

`problem.py` says what a model claims to solve; `estimators.py` reads it off scikit-learn's objects, `model_files.py`, `wabbit.py`
and `trained_by.py` off files and command lines; `divided.py` does what a scaler in front did. `running.py` divides memory and
puts a problem's parts together; `course.py` holds the passes, `sides.py` and `several.py` the first of them, `together.py` how
several problems share them; `master.py` the bound of a mixture of cuts. `record.py` is the result.
"""
