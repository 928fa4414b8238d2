"""Recipes: how rows as people have them became features and labels, kept in stores and models so that it can be done again.

`recipe.py` holds the records and their JSON, `comparison.py` says whether data fit a model.
"""
