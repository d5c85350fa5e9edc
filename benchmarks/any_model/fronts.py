"""Means over splits, and whether points of other methods are beyond a front of ours."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student

from benchmarks._common import CONFIDENCE, half_width
from benchmarks._runner import Row
from benchmarks.any_model.data import TRAINING_SHARE
from benchmarks.any_model.notions import KAPPAS, NOTIONS, floor

#: Methods whose fronts others are compared with: the head, for those that need the group of new rows the one that
#: knows it, and boosted trees that follow the bound themselves.
HEAD = "head"
HEAD_WITH_GROUPS = "head_groups"
#: The same on the mean of the folds' models; and all methods that need the group of new rows.
ENSEMBLE = "head_ensemble"
ENSEMBLE_WITH_GROUPS = "head_groups_ensemble"
NEED_GROUPS = (HEAD_WITH_GROUPS, ENSEMBLE_WITH_GROUPS, "threshold_optimizer", "oxonfair_groups")
BOOSTING = "boosting_errors"
#: Trees without a bound, where the fronts end.
WITHOUT_BOUND = "trees"
POINT = ["data", "notion", "method", "kappa"]
VALUES = [
    "train_gap", "promised", "test_gap", "error", "floor", "floor_of_several", "accuracy", "auc", "log_loss", "seconds",
]  # fmt: skip
#: Gap on new rows over the gap that sampling explains, up to which a bound counts as kept.
KEPT = 1.25


def half_widths_of_all(compared: pd.DataFrame) -> pd.Series:
    """Half the widths of intervals that hold for all lines of a comparison together, by Bonferroni's inequality."""
    freedom = compared.splits - 1
    levels = (1 + CONFIDENCE) / 2, 1 - (1 - CONFIDENCE) / (2 * max(len(compared), 1))
    each, together = (student.ppf(level, freedom) for level in levels)
    return compared.half_width * together / each


def points(results: pd.DataFrame) -> pd.DataFrame:
    """Means over the splits of every method at every bound, with standard errors, and gaps over their floors."""
    grouped = results.groupby(POINT, sort=False)
    table = means(grouped, VALUES)
    for name in ("test_gap", "accuracy", "auc"):
        table[f"{name}_se"] = grouped[name].std() / np.sqrt(table.splits)
    return table.reset_index()


def means(grouped: Any, columns: list[str]) -> pd.DataFrame:
    """Means of columns over the splits, the number of these, and mean gaps over what sampling alone explains.

    "over_floor_of_one" takes the floor of a single difference. The other one is larger where the gap is the largest of
    several differences; "floor_of_several" and "over_floor" are NaN where it was not measured in every split.
    """
    table = grouped[columns].mean()
    several = table.floor_of_several.where(grouped.floor_of_several.count() == grouped.size())
    return table.assign(
        floor_of_several=several,
        over_floor=table.test_gap / several,
        over_floor_of_one=table.test_gap / table.floor,
        splits=grouped.seed.nunique(),
    )


def cells(table: pd.DataFrame) -> pd.DataFrame:
    """The points under a bound; the loosest bounds, which fronts have only for what is compared with them, are out."""
    return table[table.kappa <= KAPPAS[-1]]


def shares_kept(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Shares of the cells whose mean gap on new rows is within `KEPT` times what sampling explains.

    ``share_kept`` is NaN if that was not measured for a cell. ``of_one`` takes the floor of a single difference, and
    ``expected_of_one`` is the share of a method that does not adapt to its training rows, by that floor.
    """
    kept = (table.over_floor <= KEPT).astype(float).where(table.over_floor.notna())
    marked = table.assign(kept=kept, of_one=table.over_floor_of_one <= KEPT, expected=expected_share(table))
    grouped = marked.groupby(by, sort=False)
    return grouped.agg(
        cells=("of_one", "size"),
        share_kept=("kept", lambda cells: cells.mean(skipna=False)),
        of_one=("of_one", "mean"),
        expected_of_one=("expected", "mean"),
        mean=("over_floor", lambda cells: cells.mean(skipna=False)),
        worst=("over_floor", lambda cells: cells.max(skipna=False)),
    )


def expected_share(table: pd.DataFrame) -> np.ndarray:
    """Probability that a cell is kept by a method that does not adapt to its training rows.

    Such a method has a gap of ``kappa`` on the training rows, and on new ones this plus the difference of the errors of
    two independent samples.

    Parameters
    ----------
    table : DataFrame
        Columns "kappa", "error", "floor" and "splits" of the cells; "training_share", the share of the training rows
        among those of a split, where it is not `TRAINING_SHARE`.

    Returns
    -------
    probabilities : ndarray of shape (n_cells,)
        By a normal approximation of the mean over the splits.
    """
    error = table.error / np.sqrt(table.get("training_share", TRAINING_SHARE))
    mean = floor(table.kappa, error)
    deviation = np.sqrt(np.maximum(table.kappa**2 + error**2 - mean**2, 1e-24) / table.splits)
    return norm.cdf((KEPT * table.floor - mean) / deviation)


class Corner(NamedTuple):
    """The head's front at a given gap: its points on both sides with their weights, and the slope between them."""

    kappas: tuple[float, float]
    weight: float
    slope: float


def _front(head: pd.DataFrame, measure: str) -> pd.DataFrame:
    """The head's mean points that no other one of them dominates, by their gap."""
    ordered = head.groupby("kappa")[["test_gap", measure]].mean().sort_values("test_gap")
    best = ordered[measure].cummax().shift(fill_value=-np.inf)
    return ordered[ordered[measure] > best]


def _corner(front: pd.DataFrame, measure: str, gap: float) -> Corner:
    """The place of a gap on the front; outside of it, the nearest end."""
    gaps, kappas, heights = front["test_gap"].to_numpy(), front.index.to_numpy(), front[measure].to_numpy()
    right = int(np.clip(np.searchsorted(gaps, gap), 0, gaps.size - 1))
    left = max(right - 1, 0)
    if gap <= gaps[0] or gap >= gaps[-1]:
        end = 0 if gap <= gaps[0] else gaps.size - 1
        return Corner((kappas[end], kappas[end]), 0.0, 0.0)
    width = gaps[right] - gaps[left]
    return Corner((kappas[left], kappas[right]), (gap - gaps[left]) / width, (heights[right] - heights[left]) / width)


def compare(results: pd.DataFrame, ours: str = HEAD, ours_with_groups: str = HEAD_WITH_GROUPS) -> pd.DataFrame:
    """Compare every point of every method with the front of one of ours at the same mean gap on new rows.

    ``difference`` is the mean over the splits that both have of the other method's performance minus that of the front,
    which is interpolated between its means; differences of gaps within a split count by the front's slope. The other
    method ``dominates`` where this exceeds half the width of its 95 % interval; with one split that is unknown.

    Parameters
    ----------
    results : DataFrame
    ours : str
        Method with the front, which ends at the trees without a bound.
    ours_with_groups : str
        Method that takes its place where the other one needs the group of new rows, and where there are results of it.

    Returns
    -------
    compared : DataFrame
        A line for every point.
    """
    lines: list[Row] = []
    for (data, notion), part in results.groupby(["data", "notion"], sort=False):
        measure = NOTIONS[str(notion)].performance
        fronts = {name: part[part.method == name] for name in (ours, ours_with_groups)}
        unbounded = part[part.method == WITHOUT_BOUND]
        for (method, kappa), rows in part[~part.method.isin(list(fronts))].groupby(["method", "kappa"], sort=False):
            knows = method in NEED_GROUPS and not fronts[ours_with_groups].empty
            against = ours_with_groups if knows else ours
            front = pd.concat([fronts[against], unbounded])
            seeds = sorted(set(rows.seed) & set(fronts[against].seed))
            if seeds and np.isfinite(kappa) and rows[measure].notna().all():
                common = front[front.seed.isin(seeds)]
                # bounds that were run in some of these splits only are no points of the front
                complete = common.groupby("kappa").seed.transform("nunique") == len(seeds)
                line = beyond_front(rows[rows.seed.isin(seeds)], common[complete], measure)
                names = {"data": data, "notion": notion, "method": method, "against": against, "kappa": kappa}
                lines.append(names | line)
    columns = ["data", "notion", "method", "against", "kappa", "splits", "gap", "difference", "half_width", "dominates"]
    return pd.DataFrame(lines, columns=columns)


def beyond_front(rows: pd.DataFrame, head: pd.DataFrame, measure: str) -> Row:
    """Compare a point of another method with a front at the same mean gap on new rows, see `compare`.

    Parameters
    ----------
    rows : DataFrame
        Point of the other method: a row for each split, with the columns "seed", "test_gap" and the measure.
    head : DataFrame
        Points of the front in the same splits, told apart by the column "kappa".
    measure : str
        Performance, larger is better.

    Returns
    -------
    line : dict
    """
    front = _front(head, measure)
    gap = float(rows.test_gap.mean())
    corner = _corner(front, measure, gap)
    sides = [head[head.kappa == kappa].set_index("seed")[["test_gap", measure]] for kappa in corner.kappas]
    between = (1 - corner.weight) * sides[0] + corner.weight * sides[1]
    own = rows.set_index("seed")[["test_gap", measure]]
    apart = own - between
    differences = apart[measure] - corner.slope * apart["test_gap"]
    if gap > front["test_gap"].iloc[0]:
        known = len(differences) > 1
        width = half_width(differences)
        dominates: Any = bool(differences.mean() > width) if known else None
    else:  # the head has no model of so small a gap: its tightest one has to be worse in performance as well
        width = half_width(apart[measure])
        dominates = bool(apart[measure].mean() > width) if len(apart) > 1 else None
    return {
        "splits": len(differences),
        "gap": gap,
        "difference": float(differences.mean()),
        "half_width": width,
        "dominates": dominates,
    }
