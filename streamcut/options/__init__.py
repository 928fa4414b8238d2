"""Options, each declared once: its default, what it does, which values it takes, and which tasks and solvers have it.

A record of options is a frozen dataclass whose fields are made by `option`:

    tol: float | None = option(1e-3, "Stop when the gap is at most this.", group="When to stop", check=NOT_NEGATIVE)

From this come the argument of the command line and its help (streamcut.cli.made), what `expect_valid` accepts, what the
docstrings of functions say (`documented`), the parameters of estimators, which solver has it (streamcut.solver_table), and the
values with which tests show that it has an effect. A new option of training is a field in `training.py`, and the place that
uses it.

`option.py` says what an option is, `training.py` has those of `train`; what they mean together is in streamcut.config. Others are
declared where they are used.
"""
