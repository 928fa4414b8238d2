"""The bundle: cutting planes of the mean loss, the master problem over them, and line searches between two points.

It is all arithmetic on arrays passed in by a solver: no rows, no files, no loss by name. `bundle.py` keeps cuts and solves
for their best mixture (`verified_master.py`), `two_cuts.py` mixes two in closed form and
searches lines, for one or many problems at once, `line_search.py` lines of losses that cost a sort. It imports the
foundation and streamcut.compiled. A new rule for dropping or merging cuts belongs in `bundle.py`.
"""
