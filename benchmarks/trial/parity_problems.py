"""Random problems for the estimators that bound gaps of ranks, rates and AUCs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.trial import gaps
from benchmarks.trial.objectives import Objective, of_rows, of_target, pairs_of_labels
from benchmarks.trial.problem import KAPPAS, ORDER, THRESHOLD, VALUES, Bound, Problem
from benchmarks.trial.rows import Rows, draw_rows
from fairconstrained import AUCFairClassifier, PartialParityClassifier, PartialParityRegressor, RateParityClassifier
from fairconstrained.constraints import (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    GroupAUC,
    RateGap,
    StatisticalParity,
)

__all__ = ["auc_fair", "partial_parity", "rate_parity", "regression"]

_CONSTRAINTS = {
    "statistical_parity": StatisticalParity,
    "demographic_parity": DemographicParity,
    "group_auc": GroupAUC,
    "equal_opportunity": EqualOpportunity,
    "equalized_odds": EqualizedOdds,
}
_AUC_METRICS = ("group_auc", "inter_group", "intra_group", "positive_equality", "negative_equality", "bpsn_bnsp")
_ALPHAS = (1e-4, 1e-4, 1e-4, 1e-2, 0.0)


def pick(rng: np.random.Generator, values: Any, p: Any = None) -> Any:
    """One of some values."""
    return values[int(rng.choice(len(values), p=p))]


def problem_of(rows: Rows, **others: Any) -> Problem:
    """The problem of some rows with other fields; by default of their classes, with their groups and weights."""
    weights = {} if rows.sample_weight is None else {"sample_weight": rows.sample_weight}
    fit_params = {"sensitive_features": rows.groups, **weights}
    return Problem(**{"target": rows.y, "fit_params": fit_params, "weights": rows.weights} | others, rows=rows)


def subsets_of(notion: str, rows: Rows) -> list[np.ndarray]:
    """The rows among which groups are compared, one after the other."""
    if notion == "equal_opportunity":
        return [rows.positive]
    return [rows.positive, ~rows.positive] if notion == "equalized_odds" else [np.ones(rows.positive.size, dtype=bool)]


def cells_of(rows: Rows, subsets: list[np.ndarray]) -> list[np.ndarray]:
    """Every group's rows of every subset."""
    return [member & kept for kept in subsets for member in rows.members.T]


def _interval(rng: np.random.Generator, rows: Rows) -> tuple[Any, list[list[tuple[float, float]]]]:
    """An interval as a user may write it, and the pieces of every group."""
    n_groups, kind = (
        len(rows.labels),
        pick(rng, ["whole", "top", "middle", "union", "by group"], [0.5, 0.2, 0.1, 0.1, 0.1]),
    )
    if kind == "by group":
        pieces = [[(0.0, float(np.round(rng.uniform(0.3, 1), 2)))] for _ in range(n_groups)]
        return {label: own[0] for label, own in zip(rows.labels, pieces, strict=True)}, pieces
    written = {"whole": (0.0, 1.0), "top": (0.0, 0.3), "middle": (0.25, 0.75), "union": [(0.0, 0.3), (0.6, 0.9)]}[kind]
    return written, [list(written) if kind == "union" else [written]] * n_groups


def _parity_bound(
    name: str, parity: str, kappa: float | None, rows: Rows, pieces: Any, normalize: bool, threshold: float
) -> Bound:
    subsets = subsets_of(parity, rows)
    about, weights = (rows.members, rows.weights), rows.weights
    gap: Any
    if parity == "statistical_parity":
        gap, depends_on = partial(_statistical, rows, pieces, normalize), ORDER
    elif parity == "group_auc":
        gap, depends_on = partial(_group_auc, rows, pieces), ORDER
    else:
        gap = partial(
            gaps.parity_gap, members=about[0], weights=weights, subsets=subsets, threshold=threshold, pieces=pieces,
            normalize=normalize,
        )  # fmt: skip
        depends_on = THRESHOLD
    lengths = [sum(end - begin for begin, end in own) for own in pieces] * len(subsets)
    if not normalize and parity != "group_auc":
        lengths = [1.0] * len(lengths)
    return Bound(name, kappa, gap, depends_on, cells_of(rows, subsets), lengths, threshold)


def _statistical(rows: Rows, pieces: Any, normalize: bool, scores: np.ndarray) -> float:
    return gaps.statistical_gap(scores, rows.members, rows.weights, pieces, normalize)


def _group_auc(rows: Rows, pieces: Any, scores: np.ndarray) -> float:
    return gaps.group_auc_gap(scores, rows.members, rows.weights, pieces)


def _parities(
    rng: np.random.Generator, rows: Rows, known: list[str], scale: float
) -> tuple[dict[str, Any], list[Bound]]:
    """The parameters of one or several bounds, and what they are about."""
    kappa = pick(rng, [*KAPPAS, None], [0.15, 0.12, 0.2, 0.2, 0.15, 0.15, 0.03])
    threshold = 0.0 if rng.random() < 0.8 and scale == 1 else float(np.round(rng.normal() * scale / 2, 3))
    normalize = bool(rng.random() < 0.85)
    if rng.random() < 0.15:  # several at once
        chosen = [pick(rng, known) for _ in range(2)]
        named, bounds = [], []
        for number, parity in enumerate(chosen):
            interval, pieces = _interval(rng, rows)
            options: dict[str, Any] = {"interval": interval}
            options |= {} if parity in ("statistical_parity", "group_auc") else {"threshold": threshold}
            options |= {} if parity == "group_auc" else {"normalize": normalize}
            own = pick(rng, KAPPAS)
            named.append((f"c{number}", _CONSTRAINTS[parity](own, **options)))
            bounds.append(_parity_bound(f"c{number}", parity, own, rows, pieces, normalize, threshold))
        return {"constraint": named, "threshold": threshold}, bounds
    parity = pick(rng, known)
    interval, pieces = _interval(rng, rows)
    bound = _parity_bound(parity, parity, kappa, rows, pieces, normalize, threshold)
    params = {
        "kappa": kappa,
        "constraint": parity,
        "interval": interval,
        "normalize": normalize,
        "threshold": threshold,
    }
    return params, [bound]


def _notion(params: dict[str, Any]) -> str:
    if isinstance(params["constraint"], list):
        return " + ".join(type(constraint).__name__ for _, constraint in params["constraint"])
    return params["constraint"]


def _is_whole(interval: tuple[float, float]) -> bool:
    return interval == (0.0, 1.0)


def partial_parity(rng: np.random.Generator, seed: int) -> Problem:
    """`PartialParityClassifier`."""
    rows = draw_rows(rng, overlapping=False)
    params, bounds = _parities(rng, rows, list(_CONSTRAINTS), 1.0)
    losses = ["logistic", "hinge", "squared", "truncated_logistic", "zero_one", "auc"]
    loss = pick(rng, losses, [0.35, 0.12, 0.12, 0.1, 0.16, 0.15])
    alpha, interactions, intercept = pick(rng, _ALPHAS), bool(rng.random() < 0.25), bool(rng.random() < 0.85)
    params |= {"objective": loss, "alpha": alpha, "group_interactions": interactions, "fit_intercept": intercept}
    objective: Objective | None = None
    if loss == "auc":
        pair_loss = pick(rng, ["logistic", "hinge", "quadratic"], [0.6, 0.2, 0.2])
        interval = (0.0, 1.0) if rng.random() < 0.8 else (0.0, 0.3)
        params |= {"auc_loss": pair_loss, "auc_interval": interval}
        objective = pairs_of_labels(pair_loss, rows.positive, rows.weights, interval)
    elif loss != "zero_one":
        objective = of_rows(loss, rows.positive, rows.weights)
    groups = {"sensitive_features": rows.groups} if interactions else {}
    return problem_of(
        rows,
        seed=seed,
        estimator="PartialParityClassifier",
        notion=_notion(params),
        loss=loss,
        make=partial(PartialParityClassifier, random_state=seed, **params),
        scores_of=lambda model: model.decision_function(rows.X, **groups),
        bounds=bounds,
        objective=objective,
        alpha=alpha,
        has_intercept=intercept,
        counts_errors=loss == "zero_one",
        threshold=params["threshold"],
        words=["interactions"] * interactions + ["no intercept"] * (not intercept),
    )


def regression(rng: np.random.Generator, seed: int) -> Problem:
    """`PartialParityRegressor`."""
    rows = draw_rows(rng, overlapping=False)
    params, bounds = _parities(
        rng, rows, ["statistical_parity", "demographic_parity", "group_auc"], float(np.abs(rows.target).mean())
    )
    alpha, interactions, intercept = pick(rng, _ALPHAS), bool(rng.random() < 0.25), bool(rng.random() < 0.85)
    params |= {"alpha": alpha, "group_interactions": interactions, "fit_intercept": intercept}
    groups = {"sensitive_features": rows.groups} if interactions else {}
    return problem_of(
        rows,
        seed=seed,
        estimator="PartialParityRegressor",
        notion=_notion(params),
        loss="squared",
        make=partial(PartialParityRegressor, random_state=seed, **params),
        target=rows.target,
        scores_of=lambda model: model.predict(rows.X, **groups),
        bounds=bounds,
        objective=of_target(rows.target, rows.weights),
        alpha=alpha,
        has_intercept=intercept,
        threshold=params["threshold"],
        words=["interactions"] * interactions + ["no intercept"] * (not intercept),
    )


def auc_fair(rng: np.random.Generator, seed: int) -> Problem:
    """`AUCFairClassifier` with the exact gap."""
    rows = draw_rows(rng, overlapping=False)
    metric, kappa = pick(rng, _AUC_METRICS), pick(rng, [*KAPPAS, None], [0.15, 0.12, 0.2, 0.2, 0.15, 0.15, 0.03])
    code = None if rng.random() < 0.7 else int(rng.integers(len(rows.labels)))
    loss, alpha = pick(rng, ["logistic", "auc"], [0.65, 0.35]), pick(rng, [0.0, 1e-4, 1e-2])
    intercept = bool(rng.random() < 0.85)
    sets = gaps.auc_sets(metric, rows.members, rows.positive, code)
    cells = [cell for four in sets for cell in four if cell is not None]
    is_auc = loss == "auc"
    objective = (pairs_of_labels if is_auc else of_rows)("logistic", rows.positive, rows.weights)
    gap = lambda scores: gaps.auc_sets_gap(scores, rows.weights, sets)  # noqa: E731
    bound = Bound(metric, kappa, gap, ORDER, cells, [1.0] * len(cells))
    params = {"constraint": metric, "objective": loss, "alpha": alpha, "fit_intercept": intercept}
    protected = None if code is None else rows.labels[code]
    return problem_of(
        rows,
        seed=seed,
        estimator="AUCFairClassifier",
        notion=metric,
        loss=loss,
        make=partial(AUCFairClassifier, kappa, protected=protected, random_state=seed, **params),
        scores_of=lambda model: model.decision_function(rows.X),
        bounds=[bound],
        objective=objective,
        alpha=alpha,
        has_intercept=intercept,
        words=["protected"] * (code is not None) + ["no intercept"] * (not intercept),
    )


def rate_parity(rng: np.random.Generator, seed: int) -> Problem:
    """`RateParityClassifier`."""
    rows = draw_rows(rng, overlapping=True)
    known = ["demographic_parity", "equal_opportunity", "equalized_odds", "intersectional"]
    n_notions = 2 if rng.random() < 0.15 else 1
    notions = [known[i] for i in sorted(rng.permutation(4)[:n_notions])]
    rate = pick(rng, ["indicator", "sigmoid", "hinge"], [0.5, 0.3, 0.2])
    agg = "mean" if notions == ["intersectional"] and rate == "hinge" and rng.random() < 0.3 else "max"
    kappas = [pick(rng, [*KAPPAS, None], [0.15, 0.12, 0.2, 0.2, 0.15, 0.15, 0.03])] * n_notions
    if n_notions > 1:
        kappas = [pick(rng, KAPPAS) for _ in notions]
    loss = pick(rng, ["logistic", "hinge", "squared", "truncated_logistic", "zero_one"], [0.4, 0.15, 0.15, 0.1, 0.2])
    alpha, intercept = pick(rng, _ALPHAS), bool(rng.random() < 0.85)
    interactions = bool(rng.random() < 0.25) and not rows.overlaps
    params: dict[str, Any] = {"kappa": kappas[0], "constraint": notions[0], "agg": agg, "rate": rate}
    if n_notions > 1:
        pairs = zip(notions, kappas, strict=True)
        params = {"constraint": [(notion, RateGap(kappa, constraint=notion, rate=rate)) for notion, kappa in pairs]}
    params |= {"objective": loss, "alpha": alpha, "group_interactions": interactions, "fit_intercept": intercept}
    bounds = [_rate_bound(*pair, rows, rate, agg) for pair in zip(notions, kappas, strict=True)]
    groups = {"sensitive_features": rows.groups} if interactions else {}
    return problem_of(
        rows,
        seed=seed,
        estimator="RateParityClassifier",
        notion=" + ".join(f"{notion} {rate}" for notion in notions),
        loss=loss,
        make=partial(RateParityClassifier, random_state=seed, **params),
        scores_of=lambda model: model.decision_function(rows.X, **groups),
        bounds=bounds,
        objective=None if loss == "zero_one" else of_rows(loss, rows.positive, rows.weights),
        alpha=alpha,
        has_intercept=intercept,
        counts_errors=loss == "zero_one",
        words=["interactions"] * interactions + ["no intercept"] * (not intercept),
    )


def _rate_bound(notion: str, kappa: float | None, rows: Rows, rate: str, agg: str) -> Bound:
    subsets = subsets_of(notion, rows)
    reference = "pairwise"
    if notion == "intersectional":
        reference = "excess" if rate == "hinge" else "overall"

    def gap(scores: np.ndarray) -> float:
        values = gaps.row_values(rate, scores, rows.positive)
        return gaps.gap_of_means(values, rows.members, rows.weights, subsets, reference, agg)

    cells = cells_of(rows, subsets)
    return Bound(notion, kappa, gap, THRESHOLD if rate == "indicator" else VALUES, cells, [1.0] * len(cells))
