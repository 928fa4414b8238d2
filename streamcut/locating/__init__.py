"""Where the exact optimum of a linear model's problem is, and what that proves of predictions, measures and standard errors.

A model with weights w_b and a gap G = F(w_b) − D is not the optimum w*, but w* is near: F is 1-strongly convex, so that w* lies
in a *ball* round w_b, or in a smaller one half-way to the dual point. Where the loss is smooth its curvature along the way is
known from the rows, and w* lies in an *ellipsoid*, F being H-strongly convex there with

    H = I + C Σ u_i h_i x_i x_iᵀ,    h_i = min ℓ″ on [z_i − ρ_i, z_i + ρ_i],    |⟨w_b − w*, x_i⟩| ≤ ρ_i.

`problem.py` is the problem that a model claims to solve; `sums.py` reads the rows; `intercept.py` bounds a free intercept;
`factor.py` inverts H with all rounding counted; and `locate.py` repeats this until ρ settles. `regions.py` and `answers.py` are
the consequences for other rows, `standard_errors.py` and `sandwich.py` those for the weights.
"""
