"""The demo of the README: accuracy against partial parity on the law school data, next to other methods.

A second table compares the bounded gaps of the training rows with those of new rows. ``python -m examples.demo`` prints
both and writes ``pareto.csv`` and ``pareto.png`` into the current folder.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
import sklearn
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from fairconstrained import FairHeadClassifier, PartialParityClassifier
from fairconstrained.datasets import load_law_school
from fairconstrained.model_selection import best_feasible, get_fairness_scorer, pareto_front
from fairconstrained.plotting import ParetoFrontDisplay

#: The lower 30 % of every group: the candidates whom a threshold is most likely to reject.
INTERVAL = (0.7, 1.0)
#: Held-out gap that the refit rule of the grid searches allows.
BOUND = 0.05
SCORING = {
    "accuracy": get_fairness_scorer("accuracy"),
    "pSP": get_fairness_scorer("pSP", interval=INTERVAL),
    "Ind": get_fairness_scorer("Ind"),
    "Sp": get_fairness_scorer("Sp"),
    # a fold in which a group gets one prediction only has no sufficiency gap
    "Sf": get_fairness_scorer("Sf", on_empty="nan"),
}


class _Deciding(ClassifierMixin, BaseEstimator):
    """A method of Fairlearn as a scikit-learn classifier. It decides and gives no scores, so it has no pSP."""

    __metadata_request__fit = {"sensitive_features": True}  # noqa: RUF012 (scikit-learn's protocol)
    __metadata_request__predict = {"sensitive_features": True}  # noqa: RUF012

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None) -> _Deciding:
        self.classes_ = np.unique(y)
        self.model_ = self._model()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # Fairlearn on recent pandas
            self.model_.fit(X, y, sensitive_features=sensitive_features)
        return self


class Reduction(_Deciding):
    """`ExponentiatedGradient` under demographic parity; its random draws are seeded."""

    def __init__(self, bound: float = 0.05) -> None:
        self.bound = bound

    def _model(self) -> Any:
        return ExponentiatedGradient(LogisticRegression(), DemographicParity(difference_bound=self.bound))

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        return self.model_.predict(X, random_state=0)


class Thresholds(_Deciding):
    """`ThresholdOptimizer` under demographic parity; its random draws are seeded."""

    def _model(self) -> Any:
        return ThresholdOptimizer(estimator=LogisticRegression(), predict_method="predict_proba")

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        return self.model_.predict(X, sensitive_features=sensitive_features, random_state=0)


class Method(NamedTuple):
    """A classifier, the values of its bound, whether it gives scores or decisions only, and the gap that it bounds."""

    classifier: Any
    grid: dict[str, list[float]]
    gives_scores: bool = True
    bounds: str = "Ind"


METHODS = {
    "PartialParity, every threshold": Method(
        PartialParityClassifier(interval=INTERVAL), {"kappa": [0.7, 0.6, 0.5, 0.4, 0.2, 0.1]}, bounds="pSP"
    ),
    "PartialParity, one threshold": Method(
        PartialParityClassifier(constraint="demographic_parity", objective="zero_one"),
        {"kappa": [0.1, 0.05, 0.02, 0.01]},
    ),
    "FairHead on boosted trees": Method(
        FairHeadClassifier(
            HistGradientBoostingClassifier(max_iter=60, learning_rate=0.05, random_state=0),
            PartialParityClassifier(constraint="demographic_parity", objective="zero_one"),
            random_state=0,
        ),
        {"head__kappa": [0.1, 0.05, 0.02, 0.01]},
    ),
    "LogisticRegression": Method(LogisticRegression(), {}),
    "ExponentiatedGradient": Method(Reduction(), {"bound": [0.1, 0.05, 0.02, 0.01]}, gives_scores=False),
    "ThresholdOptimizer": Method(Thresholds(), {}, gives_scores=False),
}


def _estimate(pipeline: Any, X: Any, y: Any) -> float:
    """Estimate of the bounded gap on new rows that `fit` has made from the training rows alone."""
    gaps = getattr(pipeline[-1], "new_row_gaps_", {})
    return max((gap.estimate for gap in gaps.values()), default=np.nan)


def search(name: str, X: pd.DataFrame, y: pd.Series, groups: pd.Series) -> pd.DataFrame:
    """Cross-validate a method over its grid; one row per setting."""
    method = METHODS[name]
    pipeline = make_pipeline(StandardScaler(), method.classifier)
    step = pipeline.steps[-1][0]
    scoring = {score: scorer for score, scorer in SCORING.items() if score != "pSP" or method.gives_scores}
    grid_search = GridSearchCV(
        pipeline,
        {f"{step}__{parameter}": values for parameter, values in method.grid.items()},
        scoring=scoring | {"estimate": _estimate},
        return_train_score=True,
        refit=best_feasible("Ind", BOUND, "accuracy") if method.grid else False,
        cv=StratifiedKFold(3, shuffle=True, random_state=0),
        n_jobs=2,
        error_score="raise",
    )
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "One or more of the (test|train) scores are non-finite")  # Sf, see above
        grid_search.fit(X, y, sensitive_features=groups)
    results = pd.DataFrame(grid_search.cv_results_)
    table = pd.DataFrame({"method": name, "setting": [_setting(parameters) for parameters in results["params"]]})
    for score in scoring:
        table[f"mean_test_{score}"] = results[f"mean_test_{score}"]
        table[f"std_test_{score}"] = results[f"std_test_{score}"]
    if method.grid:
        table["bounded"], table["bound"] = method.bounds, next(iter(method.grid.values()))
        table["training_gap"] = -results[f"mean_train_{method.bounds}"]
        table["estimated_gap"] = results["mean_test_estimate"]
        table["new_row_gap"] = -results[f"mean_test_{method.bounds}"]
        table["std_new_row_gap"] = results[f"std_test_{method.bounds}"]
    table["seconds"] = results["mean_fit_time"]
    line = f"{name}: {len(results)} settings x 3 folds in {time.perf_counter() - begin:.1f} s"
    if method.grid:
        line += f"; most accurate with a held-out Ind of at most {BOUND}: {_setting(grid_search.best_params_)}"
    tqdm.write(line)
    return table


def _setting(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name.rpartition('__')[2]}={value}" for name, value in parameters.items()) or "-"


def report(results: pd.DataFrame) -> str:
    """The aligned table: means over the folds, gaps positive."""
    table = results[["method", "setting"]].copy()
    table["accuracy"] = results["mean_test_accuracy"]
    for gap in ("pSP", "Ind", "Sp", "Sf"):
        table[gap] = -results[f"mean_test_{gap}"]
    table["seconds"] = results["seconds"]
    formats = dict.fromkeys(("pSP", "Ind", "Sp", "Sf"), "{:.3f}".format)
    formats |= {"accuracy": "{:.4f}".format, "seconds": "{:.2f}".format}
    return table.to_string(index=False, formatters=formats, na_rep="-", justify="right")


def report_new_rows(results: pd.DataFrame) -> str:
    """The aligned table of what every bound is worth: the gap on the training rows, its estimate, and on new rows."""
    columns = ["method", "bounded", "bound", "training_gap", "estimated_gap", "new_row_gap", "std_new_row_gap"]
    table = results.dropna(subset="bound")[columns].set_axis(
        ["method", "bounded", "bound", "training rows", "estimate for new rows", "new rows", "std"], axis=1
    )
    return table.to_string(index=False, float_format="{:.3f}".format, na_rep="-", justify="right")


def draw(results: pd.DataFrame, path: Path) -> None:
    """Accuracy against the gap of the scores (where there are scores) and of the decisions; gaps against bounds."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(11, 9.4), layout="constrained")
    axes = figure.subplot_mosaic([["scores", "decisions"], ["kept", "kept"]])
    axes["decisions"].sharey(axes["scores"])
    panels = {"pSP": "Scores: lower 30 %, every threshold", "Ind": "Decisions: one threshold"}
    for name, (gap, title) in zip(("scores", "decisions"), panels.items(), strict=True):
        ax = axes[name]
        for method, rows in results.dropna(subset=f"mean_test_{gap}").groupby("method", sort=False):
            ParetoFrontDisplay.from_cv_results(rows, fairness=f"mean_test_{gap}", name=method, ax=ax)
        ax.set_title(title)
    _draw_kept(results.dropna(subset="bound"), axes["kept"])
    figure.suptitle("Law school: who passes the bar, by race (means over three held-out folds)")
    figure.savefig(path, dpi=150)


def _draw_kept(results: pd.DataFrame, ax: Any) -> None:
    """Gaps of the training rows, their estimates and those of new rows, in units of the bound."""
    labels = [f"{bound:g}" for bound in results["bound"]]
    kinds = {"training rows": "training_gap", "estimate for new rows": "estimated_gap", "new rows": "new_row_gap"}
    starts = np.flatnonzero(results["method"].ne(results["method"].shift()))
    places = np.arange(len(results)) + np.searchsorted(starts, np.arange(len(results)), side="right")
    styles = (
        {"fmt": "s", "color": "0.65"},
        {"fmt": "^", "color": "black", "mfc": "white"},
        {"fmt": "o", "color": "black"},
    )
    for offset, style, (kind, column) in zip((-0.2, 0.0, 0.2), styles, kinds.items(), strict=True):
        errors = results["std_new_row_gap"] / results["bound"] if kind == "new rows" else None
        heights = results[column] / results["bound"]
        ax.errorbar(places + offset, heights, errors, label=kind, capsize=3, linewidth=1, **style)
    ax.axhline(1.0, color="0.4", linestyle="--", linewidth=1)
    ax.set_xticks(places, labels)
    for first, name, bounded in zip(
        starts, results["method"].iloc[starts], results["bounded"].iloc[starts], strict=True
    ):
        ax.annotate(f"{name} ({bounded})", (places[first] - 0.4, 0.94), xycoords=("data", "axes fraction"), fontsize=8)
    ax.set_ylim(0.0, 1.15 * ax.get_ylim()[1])
    ax.set_xlabel("bound")
    ax.set_ylabel("gap / bound")
    ax.set_title("What the bounds are worth (bars: standard deviation over the folds)")
    ax.legend(loc="lower left")


def main() -> None:
    """Run everything."""
    mpl.use("Agg")
    sklearn.set_config(enable_metadata_routing=True)
    law = load_law_school(as_frame=True)
    print(f"law school: {len(law.data)} rows, groups {law.sensitive_features.value_counts().to_dict()}", flush=True)
    progress = tqdm(METHODS, desc="methods")
    tables = [search(name, law.data, law.target, law.sensitive_features) for name in progress]
    results = pd.concat(tables, ignore_index=True)
    print("\nMeans over three held-out folds; pSP is the partial statistical parity gap on the lower 30 %:\n")
    print(report(results))
    print("\nWhat the bounds are worth: the gap that is bounded, its estimate by the fit, and the one on new rows:\n")
    print(report_new_rows(results))
    front = pareto_front(results, performance="mean_test_accuracy", fairness="mean_test_pSP")
    results["on_front"] = results.index.isin(front.index)
    results.to_csv("pareto.csv", index=False)
    draw(results, Path("pareto.png"))
    print(f"\nwritten: {Path('pareto.csv').resolve()}\nwritten: {Path('pareto.png').resolve()}")


if __name__ == "__main__":
    main()
