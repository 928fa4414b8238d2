"""The bundle: cutting planes of the mean loss, the master problem over them, and line searches between two points.

It is all arithmetic on arrays passed in by a solver: no rows, no files, no loss by name. `bundle.py` keeps cuts and solves
for their best mixture (`verified_master.py`; `gram_bundle.py` for kernels), `line_search.py` finds the step; `two_cuts`
does both for many problems at once. It imports the foundation and streamcut.compiled. A new rule for dropping or merging cuts
belongs in `bundle.py`.
"""
