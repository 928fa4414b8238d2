"""Jobs: one for each kind of training, from options and a manifest to a model.

A job says what it needs of memory and which runs may continue one another (`job.py`), warms its kernels up, and puts oracle,
solver and model together. Those of linear solvers are chosen by the problem, the others by the family of solvers
(streamcut.training). What a solver needs and gives they ask streamcut.solver_table: none knows one by its name.

A new option of training: its declaration in streamcut.options, and its use here; tests/faces/test_option_effects.py finds an
option that does nothing.
"""
