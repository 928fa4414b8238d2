"""What only the papers need: sampled cuts, structured tasks, the stochastic batch perceptron and its rivals, BSGD.

`rounds*.py` run the perceptron (`sbp.py`) and its rivals, `sampled*.py` are sampled cuts, `structured_task.py`
structured tasks. Nothing imports this package but the tables of solvers and jobs, and streamcut.structured, its public door.
"""
