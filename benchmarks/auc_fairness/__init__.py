"""AUC fairness: the fronts of the paper, and what the estimator promises."""
