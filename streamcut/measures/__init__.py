"""Measures of predictions against labels, added up block by block, for `evaluate`, `tune` and reports.

A file for each task: two classes, several, ranking, sequences; `global_loss.py` is the loss that a model was trained on. They
see labels and scores, never features. A new measure is an entry in `measures` of its task's class.
"""
