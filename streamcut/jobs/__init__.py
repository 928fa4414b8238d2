"""Jobs: one for each kind of training, from options and a manifest to a model.

A job states its memory needs and which runs may continue one another (`job.py`), warms up its kernels, and combines oracle,
solver and model. The job of a linear solver is chosen by the problem, other jobs by the solver's family (streamcut.training).
Jobs read the properties of a solver from streamcut.solver_table: none refers to a solver by name.

A new option of training: its declaration in streamcut.options, and its use here; tests/inside/faces/test_option_effects.py
detects an option without effect.
"""
