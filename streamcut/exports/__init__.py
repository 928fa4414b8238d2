"""Models for other programs: `export.py` lists them and writes JSON and LIBLINEAR's text; `onnx.py`; `sklearn.py`, which also
encodes tables for estimators.
"""
