"""Tables from the results alone: ours beside the published ones, and what the figures show in numbers.

*Choice* (table "published"). For each seed and ``kappa`` the setting of best validation accuracy among the fits that
keep ``kappa`` on their training part, ties to the fairer one. The test part is only ever measured. The accuracy is the
mean over the validation parts that share no row with the seed's test part: those of all seeds where the test part is
the official one (a9a), else the seed's own. The means over the seeds, one point for each ``kappa``, are the *front*.

*Comparison.* For a published fairness F:

- ``accuracy`` is the front's at the largest ``kappa`` whose mean test fairness is at least F. Nothing is interpolated
  and no accuracy on the test part decides, but which kappa belongs to F is read off the test fairness, as it is for the
  published points;
- ``own choice`` is the difference if each seed chooses by its own validation part alone, the published protocol;
- ``validated accuracy`` and ``validated fairness`` are the test means of what a user without the test part would take:
  of all settings and kappas with (mean) validation fairness at least F the one of best validation accuracy; if there is
  none, the fairest on validation. A gap of few rows is biased upwards, so this errs on the fair side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks._common import half_width
from benchmarks.partial_fairness.cases import ALL_CASES, CASES, NOTIONS
from benchmarks.partial_fairness.tasks import OURS, PAPERS_SETTING, UNCONSTRAINED

POINT = ["data", "kappa"]
POINT_COLUMNS = ["fairness", "fairness_ci", "accuracy", "accuracy_ci", "seeds"]
#: The gap on the test part that 1 minus is the fairness, by the form that was trained.
TEST_GAPS = {False: "test_rank_gap", True: "test_gap"}


def of_all_columns(rows: pd.DataFrame, by: list[str], columns: list[str]) -> pd.DataFrame:
    """Rows of the seeds that have all that any seed has, so that no two means are over different splits.

    Parameters
    ----------
    rows : DataFrame
    by : list of str
        Each of these has seeds of its own, such as a data set.
    columns : list of str
        Columns that tell the means apart within one of them.
    """
    counts = rows.drop_duplicates([*by, *columns, "seed"]).groupby([*by, "seed"], as_index=False).size()
    most = counts.groupby(by)["size"].transform("max")
    return rows.merge(counts.loc[counts["size"] == most, [*by, "seed"]], on=[*by, "seed"])


def means(rows: pd.DataFrame, by: list[str], gap: str = TEST_GAPS[False]) -> pd.DataFrame:
    """Means over the seeds of accuracy and fairness (1 minus a gap) on the test part, with their intervals."""
    rows = rows.assign(fairness=1 - rows[gap])
    return rows.groupby(by, as_index=False, sort=False, dropna=False).agg(
        fairness=("fairness", "mean"),
        fairness_ci=("fairness", half_width),
        accuracy=("test_accuracy", "mean"),
        accuracy_ci=("test_accuracy", half_width),
        seeds=("seed", "nunique"),
        seconds=("seconds", "median"),
    )


# --- the published figures -----------------------------------------------------------------------------------------


def our_fits(results: pd.DataFrame) -> pd.DataFrame:
    """All of our fits for the rank gap of pSP with levels as by default, in the terms of the comparison."""
    ours = (results.method == OURS) & (results.notion == "pSP") & ~results.normalize.astype(bool)
    fits = results[results.experiment.isin(["pareto", "published", "acs"]) & ours]
    fits = fits.assign(kappa=fits.parameter, failed=fits.failed.astype(str) == "True")
    for part in ("val", "test"):
        fits[f"{part}_fairness"] = 1 - fits[f"{part}_rank_gap"]
    return of_all_columns(fits, ["data"], ["setting", "kappa"])


def judged(fits: pd.DataFrame, pool: bool = True) -> pd.DataFrame:
    """The fits that keep kappa, with the validation means by which they are chosen, best ones first.

    Parameters
    ----------
    fits : DataFrame
        Result of `our_fits`.
    pool : bool
        Whether seeds whose test parts are the same rows share their validation results.
    """
    kept = fits[~fits.failed]
    shared = kept.data.map({name: case.fixed_test for name, case in ALL_CASES.items()})
    pools = kept.assign(pool=np.where(shared & pool, -1, kept.seed))
    by_pool = pools.groupby([*POINT, "pool", "setting"])[["val_accuracy", "val_fairness"]].transform("mean")
    kept = kept.assign(chosen_by=by_pool.val_accuracy, fairness_by=by_pool.val_fairness)
    return kept.sort_values(["chosen_by", "fairness_by"], ascending=False, kind="stable")


def choose(fits: pd.DataFrame, pool: bool = True) -> pd.DataFrame:
    """For each seed and kappa the fit of the best setting on validation, among those that keep kappa."""
    return judged(fits, pool).groupby([*POINT, "seed"], as_index=False).first()


def validated(fits: pd.DataFrame, level: float) -> pd.DataFrame:
    """For each seed the fit that the validation part alone would choose to be as fair as ``level``."""
    ranked = judged(fits)
    ranked = ranked.assign(short=np.maximum(level - ranked.fairness_by, 0.0))
    return ranked.sort_values("short", kind="stable").groupby("seed", as_index=False).first()


def point_at(points: pd.DataFrame, fairness: float) -> pd.Series:
    """The point of a front with the largest kappa among those that are fair enough; the fairest if none is."""
    reaching = points[points.fairness >= fairness]
    return points.loc[reaching.kappa.idxmax() if len(reaching) else points.fairness.idxmax()]


def beside_published(results: pd.DataFrame) -> Iterator[dict[str, object]]:
    """One row for each published pair."""
    for name, fits in our_fits(results).groupby("data"):
        front, own_choice = means(choose(fits), POINT), means(choose(fits, pool=False), POINT)
        for fairness, accuracy in ALL_CASES[name].published["partial"]:
            ours, picks = point_at(front, fairness), validated(fits, fairness)
            yield {
                "data": name,
                "published fairness": fairness,
                "published accuracy": accuracy,
                "kappa": ours.kappa,
                "fairness": ours.fairness,
                "accuracy": ours.accuracy,
                "± (95 %)": ours.accuracy_ci,
                "difference": ours.accuracy - accuracy,
                "own choice": point_at(own_choice, fairness).accuracy - accuracy,
                "validated fairness": picks.test_fairness.mean(),
                "validated accuracy": picks.test_accuracy.mean(),
                "seeds": int(ours.seeds),
            }


# --- the experiments -----------------------------------------------------------------------------------------------


def front_fits(results: pd.DataFrame, notion: str, normalize: bool) -> pd.DataFrame:
    """The fits of figure 1 for one notion and form, "method" naming the objective too where it is not the paper's."""
    rows = results[results.experiment.isin(["pareto", "regularised"]) & (results.notion == notion)]
    trained = (rows.method != OURS) | (rows.normalize.astype(bool) == normalize) | (rows.parameter == UNCONSTRAINED)
    rows = rows[trained]
    method = np.where(rows.setting == PAPERS_SETTING, rows.method, rows.setting.str.split().str[0])
    return of_all_columns(rows.assign(method=method), ["data"], ["method", "parameter"])


def fronts(results: pd.DataFrame) -> pd.DataFrame:
    """The points of figure 1 in numbers, with the training gap of ours where a bound holds."""
    found = []
    for notion, normalize in product(NOTIONS, (False, True)):
        points = means(front_fits(results, notion, normalize), ["data", "method", "parameter"], TEST_GAPS[normalize])
        form = "normalised" if normalize else "rank gap"
        found.append(points.assign(notion=notion, form=form))
    return pd.concat(found)[["notion", "form", "data", "method", "parameter", *POINT_COLUMNS]]


def variant_fits(results: pd.DataFrame, experiment: str, label: str) -> pd.DataFrame:
    """The fits of the default and of a variant of it, told apart by "kind", on the same splits."""
    default = (results.experiment == "pareto") & (results.method == OURS) & (results.notion == "pSP")
    default &= (results.setting == PAPERS_SETTING) & ~results.normalize.astype(bool)
    kinds = {"default": results[default], label: results[results.experiment == experiment]}
    # the unconstrained model is the same in both
    rows = pd.concat([rows[rows.parameter != UNCONSTRAINED].assign(kind=kind) for kind, rows in kinds.items()])
    return of_all_columns(rows, ["data"], ["kind", "parameter"])


def variants(results: pd.DataFrame, experiment: str, label: str) -> Iterator[dict[str, object]]:
    """Tables 3 and 4: for each kappa the default beside a variant of it, and the published points of both."""
    fits = variant_fits(results, experiment, label)
    by_kappa = means(fits, ["kind", "data", "parameter"]).set_index(["kind", "data", "parameter"])
    # the difference of the accuracies on a split has a narrower interval than either of them
    wide = fits.pivot_table(index=["data", "parameter", "seed"], columns="kind", values="test_accuracy")
    wide = wide.reindex(columns=["default", label])  # not all experiments have run
    gains = (wide[label] - wide["default"]).groupby(["data", "parameter"])
    for name, case in CASES.items():
        published = [case.published[key][1:] for key in ("partial", label)]
        for kappa, theirs, their_variant in zip(case.kappas["pSP"], *published, strict=True):
            if not all((kind, name, kappa) in by_kappa.index for kind in wide):
                continue
            row: dict[str, object] = {"data": name, "kappa": kappa}
            for kind, point in (("default", theirs), (label, their_variant)):
                ours = by_kappa.loc[kind, name, kappa]
                row[f"{kind}: fairness"], row[f"{kind}: accuracy"] = ours.fairness, ours.accuracy
                row[f"{kind}: published"] = "{:.4f} at {:.4f}".format(*reversed(point))
            gain = gains.get_group((name, kappa))
            yield row | {"difference": gain.mean(), "± (95 %)": half_width(gain), "seeds": int(ours.seeds)}


def matched(results: pd.DataFrame) -> pd.DataFrame:
    """Section G.6: for each interval and seed our fit, and of every baseline the one of nearest validation accuracy."""
    rows = results[results.experiment == "robustness"]
    keys = ["data", "interval", "seed"]
    target = rows[rows.method == OURS].set_index(keys).val_accuracy
    rows = rows.join(target.rename("target"), on=keys).dropna(subset="target")
    rows = rows.assign(distance=(rows.val_accuracy - rows.target).abs())
    rows = rows.sort_values("distance", kind="stable").groupby([*keys, "method"], as_index=False).first()
    return of_all_columns(rows, ["data"], ["interval", "method"])


def robustness(results: pd.DataFrame) -> pd.DataFrame:
    """Means of `matched`."""
    table = means(matched(results), ["data", "interval", "method"])
    index = ["data", "interval", "seeds"]
    return table.pivot_table(index=index, columns="method", values=["fairness", "accuracy"]).pipe(_flat)


def _flat(table: pd.DataFrame) -> pd.DataFrame:
    table.columns = [f"{method}: {value}" for value, method in table.columns]
    return table[sorted(table.columns)].reset_index()


def convergence(results: pd.DataFrame) -> pd.DataFrame:
    """Where every solver ended, on average over the splits that all solvers of a problem have run on."""
    rows = results[results.experiment.isin(["convergence", "convergence_long"])]
    keys = ["experiment", "notion", "data"]
    rows = of_all_columns(rows, keys, ["method"])
    ends = rows.groupby([*keys, "parameter", "method", "seed"], as_index=False, sort=False).last()
    values = ["evaluations", "objective", "surrogate_violation", "value", "seconds"]
    by = ["notion", "data", "parameter", "experiment", "method"]
    table = ends.groupby(by, sort=False).agg({**dict.fromkeys(values, "mean"), "seed": "nunique"}).reset_index()
    return table.drop(columns="experiment").rename(columns={"parameter": "kappa", "seed": "seeds", "value": "gap"})


def celeba_fits(results: pd.DataFrame) -> pd.DataFrame:
    """The fits on CelebA's attributes, on the same splits."""
    return of_all_columns(
        results[results.experiment == "celeba"], ["data"], ["method", "trained_on", "levels", "parameter"]
    )


def celeba(results: pd.DataFrame) -> pd.DataFrame:
    """Means of the three kinds of constraint, by solver."""
    rows = celeba_fits(results)
    rows = rows.assign(trained_on=np.where(rows.parameter == UNCONSTRAINED, "", rows.trained_on))
    by = ["method", "trained_on", "levels", "parameter"]
    table = means(rows, by).assign(train_fairness=means(rows, by, "train_rank_gap").fairness)
    table = table.rename(columns={"parameter": "kappa"})
    return table.sort_values(["method", "kappa", "trained_on", "levels"], ascending=[True, False, True, True])


def acs_fits(results: pd.DataFrame) -> pd.DataFrame:
    """The fits on ACS income, on the same splits."""
    return of_all_columns(results[results.experiment == "acs"], ["data"], ["method", "parameter"])


def acs(results: pd.DataFrame) -> pd.DataFrame:
    """Table 2: all methods at all their bounds."""
    return means(acs_fits(results), ["method", "parameter"])


def progress(results: pd.DataFrame) -> pd.DataFrame:
    """Fits, those that exceed kappa by more than its granularity, and times, by experiment and method."""
    fits = results.drop_duplicates("task")
    return fits.groupby(["experiment", "method"], as_index=False, sort=False).agg(
        fits=("task", "size"),
        seeds=("seed", "nunique"),
        infeasible=("failed", lambda failed: int((failed.astype(str) == "True").sum())),
        seconds=("seconds", "median"),
    )


#: What makes each table; an empty one is not written.
TABLES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "published": lambda results: pd.DataFrame(beside_published(results)),
    "fronts": fronts,
    "full": lambda results: pd.DataFrame(variants(results, "full", "full")),
    "levels": lambda results: pd.DataFrame(variants(results, "levels", "20 levels")),
    "robustness": robustness,
    "convergence": convergence,
    "celeba": celeba,
    "acs": acs,
    "progress": progress,
}


def write_tables(results: pd.DataFrame, folder: Path, stem: str) -> None:
    """Write ``folder/stem_NAME.csv`` for every table that the results have something for."""
    for name, make in TABLES.items():
        table = make(results)
        if len(table):
            rounded = dict.fromkeys(table.select_dtypes("number"), 4) | {"seconds": 1}
            path = folder / f"{stem}_{name}.csv"
            table.round(rounded).to_csv(path, index=False)
            print(f"{path.parent.name}/{path.name}")
