"""certify: how far a linear model, trained by any program, is from the optimum of its own problem.

A trainer that has stopped, or says "failed to converge", leaves one question: is the model good enough? Its problem

    min F(w, b) = ½‖w‖² + C Σ u_i ℓ(⟨w, x_i⟩ + b),    b free, none, or the weight of a bias feature,

answers it. One pass over the rows gives F(w₀, b₀); training that starts from these weights gives, pass by pass, a number that no
weights can go below, and better weights, whose F shows how far the model is from the optimum at least. Bounds hold for real
numbers, with all rounding counted (streamcut.foundation.rounding), and rows may be more than memory holds.

`foreign.py` is what another program's model says about its problem; `estimators.py` reads it from scikit-learn's objects,
`model_files.py` from files. `certify.py` computes F by one pass and trains from the given weights.
"""
