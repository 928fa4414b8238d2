"""Measures of predictions against labels, accumulated block by block, for `evaluate`, `tune` and reports.

One file per task: classes, numbers, ranking, sequences. Measures see labels and scores, never features. A new
measure is an entry in `measures` of its task's class.
"""
