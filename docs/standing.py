"""The table of the page "Where we stand", counted from the benchmarks' own tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

TABLES = Path(__file__).parent / "benchmarks"
#: Other software and methods on trees: what the page calls them, and our method that may know as much.
ON_TREES = {
    "threshold_optimizer": ("Fairlearn, thresholds by group", "head_groups"),
    "oxonfair_groups": ("OxonFair, groups known", "head_groups"),
    "oxonfair_inferred": ("OxonFair, groups inferred", "head"),
    "fairgbm": ("FairGBM", "head"),
    "exponentiated_gradient": ("Fairlearn, reduction", "head"),
    "two_regressions": ("Two logistic regressions and a sweep of thresholds", "head"),
}
#: On linear scores.
ON_LINES = {
    "exponentiated_gradient": ("Fairlearn, reduction", "linear_errors"),
    "threshold_optimizer": ("Fairlearn, thresholds by group", "linear_groups"),
    "grid_search": ("Fairlearn, grid search", "linear_errors"),
    "oxonfair": ("OxonFair, groups known", "linear_groups"),
    "reweighing": ("AIF360, reweighing", "linear_errors"),
    "reject_option": ("AIF360, reject option", "linear_groups"),
    "equal_odds": ("AIF360, random equalized odds", "linear_groups"),
    "gerry_fair": ("AIF360, GerryFair", "linear_groups"),
}
HEADER = (
    "Other",
    "On",
    "Points",
    "Ours better",
    "Theirs better",
    "Kept, ours",
    "Kept, theirs",
    "Time, theirs to ours",
)


def table() -> pd.DataFrame:
    """A row for every other method: comparisons beyond their intervals, bounds kept on new rows, and time."""
    rows = [_row("trees", "any_model", other, *named) for other, named in ON_TREES.items()]
    rows += [_row("linear", "notions", other, *named) for other, named in ON_LINES.items()]
    return pd.DataFrame(rows, columns=HEADER)


def _row(models: str, stem: str, other: str, title: str, ours: str) -> tuple[str, ...]:
    compared = pd.read_csv(TABLES / f"{stem}_compared.csv").query("method == @other and against == @ours")
    judged = compared[compared.half_width.notna()]
    # the difference is theirs minus ours, at the same gap on new rows
    better = int((judged.difference > judged.half_width).sum())
    worse = int((judged.difference < -judged.half_width).sum())
    kept = pd.read_csv(TABLES / f"{stem}_kept.csv")
    notions = set(kept.loc[kept.method == other, "notion"]) & set(kept.loc[kept.method == ours, "notion"])
    shares = [_share(kept[kept.notion.isin(notions) & (kept.method == method)]) for method in (ours, other)]
    counts = (str(len(judged)), str(worse), str(better)) if len(judged) else ("one split", "", "")
    return (title, models, *counts, *shares, _times(stem, compared, other, ours))


def _share(kept: pd.DataFrame) -> str:
    # by the floor of a single difference, which is known of all methods
    return f"{round((kept.of_one * kept.cells).sum())} of {kept.cells.sum()}"


def _times(stem: str, compared: pd.DataFrame, other: str, ours: str) -> str:
    """Median and range of the quotients of seconds over data sets and notions."""
    if stem == "notions":
        ratios = compared.faster.dropna()
    else:
        seconds = pd.read_csv(TABLES / f"{stem}_seconds.csv").set_index(["notion", "method"]).stack()
        ratios = (seconds.xs(other, level="method") / seconds.xs(ours, level="method")).dropna()
    middle, least, most = (f"{ratio:.2g}" if ratio < 100 else f"{ratio:.0f}" for ratio in ratios.quantile([0.5, 0, 1]))
    return f"{middle} ({least} to {most})"


def write(path: Path) -> None:
    """Write the table for the page."""
    text = table().to_csv(index=False)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
