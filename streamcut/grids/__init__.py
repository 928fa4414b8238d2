"""Grids of trainings: which models are trained together, which in sequence, how they are measured and chosen.

Imports training and evaluation; its public module is streamcut.tuning. New search methods belong here.
"""
