"""Short runs of solvers, for tests of what holds however far they come."""

__all__ = ["OF_MEAN_LOSSES", "QUICK"]

#: Options with which every solver is quick on small problems.
QUICK = {
    "adam": {"max_epochs": 3, "batch_size": 20, "learning_rate": 0.1},
    "adam_lagrangian": {"max_epochs": 2, "batch_size": 32, "learning_rate": 0.1, "tol": 0.01},
    "alm": {"max_epochs": 3, "batch_size": 20, "learning_rate": 0.2},
    "augmented_lagrangian": {"max_iter": 3, "inner_iter": 20},
    "exact_penalty": {"max_iter": 10},
    "idca": {"max_outer": 3, "max_inner": 25},
    "ipc": {"max_iter": 3, "inner_iter": 30, "proximity": 0.5},
    "ipp_conex": {"max_iter": 3, "inner_iter": 20, "learning_rate": 1.0},
    "ipp_ssg": {"max_iter": 3, "inner_iter": 20},
    "iqrc": {"max_iter": 2, "level_iter": 2, "inner_iter": 30},
    "level_set": {"max_iter": 3, "inner_iter": 30},
    "multiplier_model": {"max_epochs": 3, "batch_size": 20, "learning_rate": 0.1},
    "nupi": {"max_epochs": 3, "batch_size": 20, "learning_rate": 0.1},
    "online_subgradient": {"max_iter": 20},
    "penalized_subgradient": {"step": 0.1, "max_iter": 60},
    "penalty": {"max_epochs": 3, "batch_size": 20, "learning_rate": 0.2},
    "penalty_barrier": {"max_epochs": 3, "batch_size": 20, "learning_rate": 0.1},
    "plada": {"max_epochs": 3, "epoch_steps": 10, "learning_rate": 0.3},
    "proxy_lagrangian": {"max_iter": 50},
    "cross_fitted": {"max_iter": 3, "n_folds": 2},
    "span": {"max_iter": 3},
    "sgd": {"max_epochs": 3, "batch_size": 20, "learning_rate": 0.2},
    "ssg": {"max_iter": 100},
    "ssl_alm": {"max_epochs": 3, "batch_size": 20, "learning_rate": 0.2},
    "stochastic_ghost": {"max_epochs": 2, "batch_size": 105, "learning_rate": 0.5},
    "stochastic_idca": {"max_outer": 2, "max_inner": 20, "step": 4.0},
    "stochastic_switching": {"max_epochs": 2, "batch_size": 16, "output": "last"},
    "switching_subgradient": {"max_iter": 100},
}

#: Solvers of bounds on mean losses alone, which have tests of their own.
OF_MEAN_LOSSES = ("cross_fitted_network", "group_weights", "interior_point")
