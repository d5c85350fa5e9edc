"""Random problems for the estimators that bound losses, shares, errors of classes, and pairs of documents."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.trial import gaps
from benchmarks.trial.objectives import LOSSES, of_classes, of_pairs, of_rows, truncated
from benchmarks.trial.parity_problems import cells_of, pick, problem_of, subsets_of
from benchmarks.trial.problem import KAPPAS, ORDER, THRESHOLD, VALUES, Bound, Problem
from benchmarks.trial.rows import draw_rows
from fairconstrained import FairRanker, LossParityClassifier, MinorityRateClassifier, NeymanPearsonClassifier

__all__ = ["fair_ranker", "loss_parity", "minority_rate", "neyman_pearson"]

_LOSS_OBJECTIVES = {"log_loss": "logistic"}


def loss_parity(rng: np.random.Generator, seed: int) -> Problem:
    """`LossParityClassifier`: small networks, few epochs."""
    rows = draw_rows(rng, overlapping=True)
    constraint = pick(rng, ["demographic_parity", "equal_opportunity", "equalized_odds"])
    loss = pick(rng, ["log_loss", "hinge", "absolute", "squared"], [0.55, 0.15, 0.15, 0.15])
    reference, kappa = pick(rng, ["pairwise", "overall"], [0.7, 0.3]), pick(rng, KAPPAS)
    params: dict[str, Any] = {"constraint": constraint, "loss": loss, "reference": reference}
    params |= {"hidden_layer_sizes": pick(rng, [(4,), (8,), (8, 4)]), "max_epochs": int(rng.integers(2, 8))}
    subsets = subsets_of(constraint, rows)

    def gap(scores: np.ndarray) -> float:
        values = gaps.row_values(loss, scores, rows.positive)
        return gaps.gap_of_means(values, rows.members, rows.weights, subsets, reference)

    cells = cells_of(rows, subsets)
    return problem_of(
        rows,
        seed=seed,
        estimator="LossParityClassifier",
        notion=f"{constraint} {reference}",
        loss=loss,
        make=partial(LossParityClassifier, kappa, random_state=seed, **params),
        scores_of=lambda model: model.decision_function(rows.X),
        bounds=[Bound("loss_parity", kappa, gap, VALUES, cells, [1.0] * len(cells))],
        objective=of_rows("logistic", rows.positive, rows.weights) if loss == "log_loss" else None,
        is_linear=False,
    )


def minority_rate(rng: np.random.Generator, seed: int) -> Problem:
    """`MinorityRateClassifier`."""
    rows = draw_rows(rng, overlapping=False)
    code, min_share = int(rng.integers(len(rows.labels))), pick(rng, [0.05, 0.1, 0.2, 0.3, 0.5])
    rate, intercept = pick(rng, ["sigmoid", "indicator"]), bool(rng.random() < 0.85)
    minority = rows.members[:, code]
    params: dict[str, Any] = {"minority": rows.labels[code], "rate": rate, "fit_intercept": intercept}
    params |= {"l1_radius": pick(rng, [20.0, None, 2.0]), "alpha": pick(rng, [0.0, 1e-4])}

    def gap(scores: np.ndarray) -> float:
        return gaps.majority_share(scores, minority, rows.weights, rate)

    return problem_of(
        rows,
        seed=seed,
        estimator="MinorityRateClassifier",
        notion=rate,
        loss="truncated_logistic",
        make=partial(MinorityRateClassifier, min_share, random_state=seed, **params),
        scores_of=lambda model: model.decision_function(rows.X),
        bounds=[
            Bound("majority_share", 1 - min_share, gap, THRESHOLD if rate == "indicator" else VALUES, [minority], [1.0])
        ],
        objective=of_rows("truncated_logistic", rows.positive, rows.weights, a=2.0),
        alpha=params["alpha"],
        has_intercept=intercept,
    )


def neyman_pearson(rng: np.random.Generator, seed: int) -> Problem:
    """`NeymanPearsonClassifier` of two or three classes."""
    rows = draw_rows(rng, overlapping=False)
    n_classes = 3 if rng.random() < 0.35 else 2
    codes = rows.positive.astype(int)
    if n_classes == 3:
        codes = np.searchsorted(np.quantile(rows.target, [0.3, 0.7]), rows.target)
    names = pick(rng, [("a", "b", "c"), (0, 1, 2), (5, 7, 9)])[:n_classes]
    bound_on, loss = pick(rng, ["error", "loss"]), pick(rng, ["truncated_logistic", "logistic", "hinge"])
    values = (0.02, 0.05, 0.1, 0.2, 0.4) if bound_on == "error" else (0.2, 0.4, 0.6, 0.9, 1.5)
    bounded = sorted(rng.permutation(n_classes)[: int(rng.integers(1, n_classes + (rng.random() < 0.2)))].tolist())
    limits = {k: pick(rng, values) for k in bounded}
    alpha, intercept = pick(rng, [1e-4, 1e-2, 0.0]), bool(rng.random() < 0.85)
    priorities = [k for k in range(n_classes) if k not in limits] or list(range(n_classes))
    function = truncated(2.0)[0] if loss == "truncated_logistic" else LOSSES[loss][0]
    bounds = []
    for k, limit in limits.items():
        if bound_on == "error":
            gap = partial(_error, codes=codes, k=k, weights=rows.weights)
        else:
            gap = partial(_loss, codes=codes, k=k, weights=rows.weights, loss=function)
        about = VALUES if bound_on == "loss" else THRESHOLD if n_classes == 2 else ORDER
        bounds.append(Bound(f"{bound_on}[{names[k]}]", limit, gap, about, [codes == k], [1.0]))

    def outputs_of(model: Any) -> np.ndarray:
        found = model.decision_function(rows.X)
        return found if found.ndim == 2 else np.column_stack([np.zeros(found.size), found])

    def constants(value: float) -> list[np.ndarray]:
        ahead = range(n_classes) if n_classes > 2 else [1]
        return [np.tile(value * np.eye(n_classes)[k], (codes.size, 1)) for k in ahead]

    params = {"constraint": bound_on, "loss": loss, "alpha": alpha, "fit_intercept": intercept}
    weights = {} if rows.sample_weight is None else {"sample_weight": rows.sample_weight}
    return Problem(
        seed=seed,
        estimator="NeymanPearsonClassifier",
        notion=bound_on,
        loss=loss,
        make=partial(NeymanPearsonClassifier, {names[k]: v for k, v in limits.items()}, random_state=seed, **params),
        rows=rows,
        target=np.array(names)[codes],
        fit_params=weights,
        scores_of=outputs_of,
        bounds=bounds,
        # Under bounds on errors, all but constant scores on the safe side of the threshold keep the bounds at a
        # moderate loss and predict none of the classes of priority: a lower loss is no better model there.
        objective=None if bound_on == "error" else of_classes(loss, codes, rows.weights, priorities, a=2.0),
        weights=rows.weights,
        alpha=alpha,
        has_intercept=intercept,
        direction=np.eye(n_classes)[-1] if n_classes == 2 else None,
        constants=constants,
    )


def _error(outputs: np.ndarray, codes: np.ndarray, k: int, weights: np.ndarray) -> float:
    return gaps.class_error(outputs, codes, k, weights)


def _loss(outputs: np.ndarray, codes: np.ndarray, k: int, weights: np.ndarray, loss: Any) -> float:
    return gaps.class_loss(outputs, codes, k, weights, loss)


def fair_ranker(rng: np.random.Generator, seed: int) -> Problem:
    """`FairRanker`."""
    rows = draw_rows(rng, overlapping=False, largest=600)
    n = rows.positive.size
    qid = rng.permutation(np.arange(n) // int(rng.integers(4, 20)))
    relevance = rows.positive.astype(int)
    if rng.random() < 0.5:
        relevance = np.searchsorted(np.quantile(rows.target, [0.4, 0.8]), rows.target)
    compared, rate = (
        pick(rng, ["between", "within", "all"], [0.6, 0.2, 0.2]),
        pick(rng, ["indicator", "sigmoid", "hinge"], [0.6, 0.2, 0.2]),
    )
    kappa, alpha = pick(rng, KAPPAS), pick(rng, [1e-4, 1e-2])
    pairs, codes = gaps.query_pairs(relevance, qid), rows.members.argmax(axis=1)
    kinds = codes[pairs[:, 0]] * len(rows.labels) + codes[pairs[:, 1]]
    chosen = gaps.compared_pairs(pairs, codes, compared)
    # a kind of pairs is as fine as one pair
    cells = [kinds == kind for kind in np.unique(kinds[chosen])]
    bound = Bound(
        "pairwise_ranking",
        kappa,
        lambda scores: gaps.pair_accuracy_gap(scores, pairs, codes, compared, rate),
        ORDER if rate == "indicator" else VALUES,
        cells,
        [1.0] * len(cells),
        is_vacuous=len(cells) < 2,
    )
    return Problem(
        seed=seed,
        estimator="FairRanker",
        notion=f"{compared} {rate}",
        loss="logistic",
        make=partial(FairRanker, kappa, constraint=compared, rate=rate, alpha=alpha, random_state=seed),
        rows=rows,
        target=relevance,
        fit_params={"qid": qid, "sensitive_features": rows.groups},
        scores_of=lambda model: model.predict(rows.X),
        bounds=[bound],
        objective=of_pairs(pairs),
        weights=np.ones(len(pairs)),
        alpha=alpha,
        has_intercept=False,
    )
