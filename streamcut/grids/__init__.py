"""Grids of trainings: which models are trained together, which in sequence, how they are measured and chosen.

Imports training and evaluation; its public modules are streamcut.tuning and streamcut.tuning. New search methods
belong here.
"""
