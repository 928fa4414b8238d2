"""Recipes: how a user's rows became features and labels, kept in stores and models so that it can be repeated.

`recipe.py` holds the records and their JSON, and says whether data fit a model; `opening.py` reads them.
"""
