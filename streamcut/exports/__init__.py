"""Models for other programs.

liblinear.py    LIBLINEAR's text model
sklearn.py      a scikit-learn estimator, by joblib; sklearn_columns.py: a ColumnTransformer before it, or table_encoder.py
onnx.py         a graph for ONNX runtimes; onnx_columns.py: table columns in it
sql.py          a SELECT that scores a table
compact.py      our own file, with weights as float32 and only what scoring needs
mlflow.py       MLflow's models, which are folders: saved, logged, loaded
as_json.py      weights by feature, for any reader of JSON
linear_form.py  what they have in common: weights, intercepts and labels of a linear model
raw_form.py     and for tables the weight of each value of a column
targets.py      the list of targets, with what each can hold
export.py       picks one of them and writes the file

Imports go down to models; only the command line and users import this package.
"""
