"""Models for other programs.

liblinear.py    LIBLINEAR's text model
sklearn.py      a scikit-learn estimator, by joblib; of tables after table_encoder.py in a Pipeline
onnx.py         a graph for ONNX runtimes
as_json.py      weights by feature, for any reader of JSON
linear_form.py  what they have in common: weights, intercepts and labels of a linear model
targets.py      the list of targets, with what each can hold
export.py       picks one of them and writes the file

Imports go down to models; only the command line and users import this package.
"""
