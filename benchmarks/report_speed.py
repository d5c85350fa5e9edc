"""Reports of many groups: the time of the gaps, of their intervals and of the page, and what pairs of groups cost.

``python -m benchmarks.report_speed [intervals values pairs]`` writes a CSV each. Seconds are those of one core of the
processor, which other work on the machine changes little, unlike wall-clock time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmarks._common import command_line, keep, set_threads, significant, timed
from fairconstrained.metrics import METRICS
from fairconstrained.reporting import fairness_report

#: Metrics of pairs of groups, whose table by group visits all of them.
PAIR_METRICS = ("group_auc_gap", "inter_group_auc_gap", "wasserstein_gap")


def generated(n_samples: int, n_groups: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, log-odds and groups of nearly equal size with means of their own; every group has both labels."""
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.arange(n_samples) % n_groups)
    scores = rng.normal(size=n_samples) + 0.3 * rng.normal(size=n_groups)[groups]
    labels = (scores + rng.logistic(size=n_samples) > 0).astype(int)
    by_group = np.argsort(groups, kind="stable")
    first = np.searchsorted(groups[by_group], np.arange(n_groups))
    labels[by_group[first]], labels[by_group[first + 1]] = 0, 1
    return labels, scores, groups


def reported(n_samples: int, n_groups: int, n_resamples: int | None) -> dict[str, Any]:
    """One report and its page."""
    labels, scores, groups = generated(n_samples, n_groups)
    report, seconds = timed(
        lambda: fairness_report(labels, scores, sensitive_features=groups, n_resamples=n_resamples, verbose=1)
    )
    html, of_page = timed(report.to_html)
    return {
        "rows": n_samples,
        "groups": n_groups,
        "gaps": int(report.gaps["value"].notna().sum()),
        "resamples": report.n_resamples,
        "seconds": seconds,
        "page_seconds": of_page,
        "page_kB": len(html.encode()) / 1000,
    }


def intervals() -> pd.DataFrame:
    """With the default number of resamples, at 20,000 rows."""
    return pd.DataFrame([reported(20_000, n_groups, None) for n_groups in (2, 20, 100, 200)])


def values() -> pd.DataFrame:
    """Without resamples, at 100,000 rows."""
    return pd.DataFrame([reported(100_000, n_groups, 0) for n_groups in (100, 1000, 10_000)])


def pairs() -> pd.DataFrame:
    """The largest gap alone against the table by group, which visits every pair, at 20,000 rows."""
    records = []
    for n_groups in (20, 200):
        labels, scores, groups = generated(20_000, n_groups)
        for name in PAIR_METRICS:
            response = 1 / (1 + np.exp(-scores)) if METRICS[name].response == "predict_proba" else scores
            metric, given = METRICS[name].function, {"sensitive_features": groups}
            gap, alone = timed(lambda: metric(labels, response, **given))  # noqa: B023 - called at once
            (same, _), with_table = timed(lambda: metric(labels, response, **given, return_groups=True))  # noqa: B023
            assert abs(gap - same) < 1e-9, name
            times = {"seconds": alone, "seconds_of_all_pairs": with_table}
            records.append({"groups": n_groups, "metric": name, "gap": gap, **times})
    return pd.DataFrame(records)


EXPERIMENTS = {function.__name__: function for function in (intervals, values, pairs)}


def main() -> None:
    """Run the experiments named on the command line, or all of them."""
    parser = command_line(__doc__)
    parser.add_argument("experiments", nargs="*", choices=[[], *EXPERIMENTS], help="all without any")
    arguments = parser.parse_args()
    set_threads(1)
    for name in arguments.experiments or EXPERIMENTS:
        keep(significant(EXPERIMENTS[name]()), "report_speed", arguments, name)


if __name__ == "__main__":
    main()
