"""Models for other programs.

liblinear.py    LIBLINEAR's text model
sklearn.py      an estimator of scikit-learn's, by joblib; sklearn_columns.py: a ColumnTransformer before it, or table_encoder.py
onnx.py         a graph for ONNX runtimes; onnx_columns.py: the columns of a table in it
sql.py          a SELECT that scores a table
compact.py      our own file, with weights as float32 and nothing but what scoring needs
mlflow.py       MLflow's models, which are folders: saved, logged, loaded
as_json.py      weights by feature, for whatever reads JSON
linear_form.py  what they have in common: weights, intercepts and labels of a linear model
raw_form.py     and for tables what each value of a column weighs
targets.py      the list of these, with what each can hold
export.py       picks one of them and writes the file

Imports go down to models; nothing but the command line and users import this package.
"""
