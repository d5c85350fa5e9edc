"""The demo: accuracy against gaps between the groups on the law school data, beside other methods, in a minute.

``python -m examples.demo`` prints a table and writes ``pareto.csv`` and ``pareto.png`` into the current folder.
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
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from fairconstrained import FairHeadClassifier, PartialParityClassifier
from fairconstrained.datasets import load_law_school
from fairconstrained.model_selection import get_fairness_scorer
from fairconstrained.plotting import ParetoFrontDisplay

#: The lower 30 % of every group: the candidates whom a threshold is most likely to reject.
INTERVAL = (0.7, 1.0)
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
    """A classifier, the values of its bound, the gap that it bounds, and whether it gives scores or decisions only."""

    classifier: Any
    grid: dict[str, list[float]]
    bounds: str = ""
    gives_scores: bool = True


#: Bounds on the difference of the groups' shares of positive decisions.
BOUNDS = [0.05, 0.02]
#: No estimate for new rows, which takes two thirds of the time: here new rows are at hand.
DECISIONS = {"constraint": "demographic_parity", "objective": "zero_one", "new_row_folds": None, "random_state": 0}
BOOSTED_TREES = HistGradientBoostingClassifier(max_iter=60, learning_rate=0.05, random_state=0)
METHODS = {
    "always the majority class": Method(DummyClassifier(strategy="most_frequent"), {}, gives_scores=False),
    "LogisticRegression": Method(LogisticRegression(), {}),
    "PartialParity, scores": Method(
        PartialParityClassifier(interval=INTERVAL, new_row_folds=None, random_state=0), {"kappa": [0.7, 0.5]}, "pSP"
    ),
    "PartialParity, scores by group *": Method(
        PartialParityClassifier(interval=INTERVAL, group_interactions=True, new_row_folds=None, random_state=0),
        {"kappa": [0.3, 0.1]},
        "pSP",
    ),
    "PartialParity, decisions": Method(PartialParityClassifier(**DECISIONS), {"kappa": BOUNDS}, "Ind"),
    "PartialParity, decisions by group *": Method(
        PartialParityClassifier(group_interactions=True, **DECISIONS), {"kappa": BOUNDS}, "Ind"
    ),
    "FairHead on boosted trees": Method(
        FairHeadClassifier(BOOSTED_TREES, PartialParityClassifier(**DECISIONS), random_state=0),
        {"head__kappa": BOUNDS},
        "Ind",
    ),
    "ExponentiatedGradient": Method(Reduction(), {"bound": BOUNDS}, "Ind", gives_scores=False),
    "ThresholdOptimizer *": Method(Thresholds(), {}, gives_scores=False),
}
LEGEND = """
Accuracy and gaps are means over three parts of rows that the fits have not seen, in turn; smaller gaps are fairer.
  pSP  largest difference between the groups' shares of scores above a threshold, over the thresholds within the lower
       30 % of each group: partial statistical parity
  Ind  difference between the groups' shares of positive decisions: independence, demographic parity
  Sp   sum of the differences in true and in false positive rates: separation, equalized odds
  Sf   sum of the differences in the shares of positives among equal decisions: sufficiency, predictive parity
  training, new rows  the gap that the method bounds ("of"), on the rows of the fit and on new ones; a head bounds
       that of scores by models that have not seen the row, and on the rows of the fit its gap may be larger
  seconds  of one fit;  *  needs the group for predictions;  -  no scores, no bound, or no rows to measure it on
"""


def search(name: str, X: pd.DataFrame, y: pd.Series, groups: pd.Series) -> pd.DataFrame:
    """Cross-validate a method over its bounds; one row for each."""
    method = METHODS[name]
    pipeline = make_pipeline(StandardScaler(), method.classifier)
    step = pipeline.steps[-1][0]
    scoring = {score: scorer for score, scorer in SCORING.items() if score != "pSP" or method.gives_scores}
    grid_search = GridSearchCV(
        pipeline,
        {f"{step}__{parameter}": values for parameter, values in method.grid.items()},
        scoring=scoring,
        return_train_score=True,
        refit=False,
        cv=StratifiedKFold(3, shuffle=True, random_state=0),
        n_jobs=2,
        error_score="raise",
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "One or more of the (test|train) scores are non-finite")  # Sf, see above
        grid_search.fit(X, y, sensitive_features=groups)
    results = pd.DataFrame(grid_search.cv_results_)
    table = pd.DataFrame({"method": [name] * len(results)})
    for score in scoring:
        table[f"mean_test_{score}"] = results[f"mean_test_{score}"]
        table[f"std_test_{score}"] = results[f"std_test_{score}"]
    if method.bounds:
        table["bounded"], table["bound"] = method.bounds, next(iter(method.grid.values()))
        table["training_gap"] = -results[f"mean_train_{method.bounds}"]
        table["new_row_gap"] = -results[f"mean_test_{method.bounds}"]
        table["std_new_row_gap"] = results[f"std_test_{method.bounds}"]
    table["seconds"] = results["mean_fit_time"]
    return table


def report(results: pd.DataFrame) -> str:
    """The aligned table."""
    gaps = ["pSP", "Ind", "Sp", "Sf"]
    table = results[["method", "bounded", "bound", "training_gap", "new_row_gap"]].set_axis(
        ["method", "of", "bound", "training", "new rows"], axis=1
    )
    table.insert(1, "accuracy", results["mean_test_accuracy"])
    for gap in gaps:
        table[gap] = results[f"mean_test_{gap}"].abs()
    table["seconds"] = results["seconds"]
    formats = dict.fromkeys(("training", "new rows", *gaps), "{:.3f}".format)
    formats |= {"accuracy": "{:.4f}".format, "bound": "{:g}".format, "seconds": "{:.2f}".format}
    return table.to_string(index=False, formatters=formats, na_rep="-", justify="right")


def draw(results: pd.DataFrame, path: Path) -> None:
    """Accuracy against the gap of the scores (where there are scores) and of the decisions; gaps against bounds."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(11, 9), layout="constrained")
    axes = figure.subplot_mosaic([["scores", "decisions"], ["kept", "kept"]])
    axes["decisions"].sharey(axes["scores"])
    panels = {"pSP": "Scores: every threshold within the lower 30 %", "Ind": "Decisions: shares of positive ones"}
    majority = results["mean_test_accuracy"].iloc[0]
    for name, (gap, title) in zip(("scores", "decisions"), panels.items(), strict=True):
        ax = axes[name]
        for method, rows in results.iloc[1:].dropna(subset=f"mean_test_{gap}").groupby("method", sort=False):
            style = {} if METHODS[method].grid or not METHODS[method].gives_scores else {"color": "0.5"}
            ParetoFrontDisplay.from_cv_results(rows, fairness=f"mean_test_{gap}", name=method, ax=ax, **style)
        ax.axhline(majority, color="0.4", linestyle=":", linewidth=1)
        ax.annotate("always the majority class", (0.99, majority), xycoords=("axes fraction", "data"), **_NOTE)
        ax.set_title(title)
        ax.set_xlabel(f"{gap} on new rows (smaller is fairer)")
        ax.set_ylabel("accuracy on new rows")
    _draw_kept(results.dropna(subset="bound"), axes["kept"])
    figure.suptitle("Law school: who passes the bar, by race (means over three held-out parts; * needs the group)")
    figure.savefig(path, dpi=150)


_NOTE = {"ha": "right", "va": "bottom", "xytext": (0, 2), "textcoords": "offset points", "fontsize": 8, "color": "0.3"}


def _draw_kept(results: pd.DataFrame, ax: Any) -> None:
    """Gaps of the training rows and of new rows, in units of the bound."""
    labels = [f"{bound:g}" for bound in results["bound"]]
    kinds = {"training rows": "training_gap", "new rows": "new_row_gap"}
    starts = np.flatnonzero(results["method"].ne(results["method"].shift()))
    places = np.arange(len(results)) + np.searchsorted(starts, np.arange(len(results)), side="right")
    styles = {"fmt": "s", "color": "0.65"}, {"fmt": "o", "color": "black"}
    for offset, style, (kind, column) in zip((-0.12, 0.12), styles, kinds.items(), strict=True):
        errors = results["std_new_row_gap"] / results["bound"] if kind == "new rows" else None
        heights = results[column] / results["bound"]
        ax.errorbar(places + offset, heights, errors, label=kind, capsize=3, linewidth=1, **style)
    ax.axhline(1.0, color="0.4", linestyle="--", linewidth=1)
    ax.set_xticks(places, labels)
    for first, name, bounded in zip(
        starts, results["method"].iloc[starts], results["bounded"].iloc[starts], strict=True
    ):
        heading = f"{name}\n({bounded})".replace("PartialParity, ", "PartialParity,\n")
        ax.annotate(heading, (places[first] - 0.4, 0.97), xycoords=("data", "axes fraction"), fontsize=8, va="top")
    ax.set_xlim(right=places[-1] + 1.1)  # room for the last heading
    ax.set_ylim(0.0, 1.3 * ax.get_ylim()[1])
    ax.set_xlabel("bound")
    ax.set_ylabel("gap / bound")
    ax.set_title("What the bounds are worth (bars: standard deviation over the parts)")
    ax.legend(loc="lower left")


def main() -> None:
    """Run everything."""
    mpl.use("Agg")
    sklearn.set_config(enable_metadata_routing=True)
    begin = time.perf_counter()
    law = load_law_school(as_frame=True)
    print(f"law school: {len(law.data)} rows, groups {law.sensitive_features.value_counts().to_dict()}", flush=True)
    progress = tqdm(METHODS, desc="methods", leave=False)
    tables = [search(name, law.data, law.target, law.sensitive_features) for name in progress]
    results = pd.concat(tables, ignore_index=True)
    print(LEGEND)
    print(report(results))
    results.to_csv("pareto.csv", index=False)
    draw(results, Path("pareto.png"))
    print(f"\nwritten in {time.perf_counter() - begin:.0f} s: {Path('pareto.csv').resolve()}, pareto.png beside it")


if __name__ == "__main__":
    main()
