"""Grids of trainings: which models are trained together, which one after the other, how they are measured and chosen.

Imports training and evaluation; streamcut.tuning and streamcut.cross_validation are its doors. A new way to search comes here.
"""
