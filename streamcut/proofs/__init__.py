"""What a certificate claims, and what becomes of the claim when it is looked into (streamcut.verification).

`claims.py` has the answers of `verify`, `proving.py` proves by a training of its own, `score_doubt.py` bounds the rounding of
scores. It imports models and training.
"""
