"""Models for other programs: `export.py` lists them, with what each can hold, and writes JSON, LIBLINEAR's text and ONNX;
`sklearn.py` writes estimators, and encodes tables for Pipelines and estimators.

Imports go down to models and data. A new program is an entry in `TARGETS`, and a module if it needs a library at once.
"""
