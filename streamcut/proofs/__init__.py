"""What a certificate claims, and how the claim is checked (streamcut.verification).

`claims.py` holds the answers of `verify`, `proving.py` proves by training from the rows, `score_doubt.py` bounds the rounding of
scores. It imports models and training.
"""
