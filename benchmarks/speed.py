"""Linear fits under bounds on rates, at the exact training value that Fairlearn's reduction reaches.

``python -m benchmarks.speed [--data bank,a9a] [--docs]`` fits the reduction with scikit-learn's logistic regression at
a bound, and then ours at the exact training gap of its expected decisions, on the same dense arrays: log loss or
counted errors, one model for all groups or one for each. Seconds are processor time of one thread, in one process, and
medians of runs in turns. "evaluations" are ours, in units of one value and gradient on all rows; "passes" are the
numbers that products read, in multiples of those of X: a product with several columns reads X once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pandas as pd
from fairlearn.reductions import DemographicParity, EqualizedOdds, ExponentiatedGradient
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from tqdm import tqdm

from benchmarks._common import (
    Table,
    add_names,
    command_line,
    keep,
    load_a9a,
    load_acs_income,
    load_bank_table,
    load_compas_table,
    load_law_school_table,
    set_threads,
    significant,
    timed,
)
from fairconstrained import RateParityClassifier
from fairconstrained.exceptions import ConvergenceWarning
from fairconstrained.models import linear

NOTIONS = {"demographic_parity": DemographicParity, "equalized_odds": EqualizedOdds}
KAPPAS = (0.02, 0.05)
#: Functions of `fairconstrained.features` that read all rows of X.
PRODUCTS = ("product", "sums_of_products", "weighted_gram", "squares")


def acs_dense() -> Table:
    """70,000 rows of the ACS sample, with the 400 columns that most rows have."""
    table = load_acs_income().some(70_000)
    columns = np.sort(np.argsort(-table.X.count_nonzero(axis=0))[:400])
    return table._replace(name="acs_dense", X=table.X[:, columns].toarray())


def a9a_dense() -> Table:
    table = load_a9a()
    return table._replace(X=table.X.toarray())


DATA: dict[str, Callable[[], Table]] = {
    "compas": lambda: load_compas_table().standardised(),
    "law_school": lambda: load_law_school_table().standardised(),
    "bank": lambda: load_bank_table().standardised(),
    "a9a": a9a_dense,
    "acs_dense": acs_dense,
}


class Part(NamedTuple):
    """Rows, their labels in {0, 1}, and their groups."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray

    def gap(self, notion: str, shares: np.ndarray) -> float:
        """Largest difference of the groups' rates of positive decisions, which have these probabilities."""
        masks = [self.y == label for label in (0, 1)] if notion == "equalized_odds" else [self.y >= 0]
        rates = [[shares[mask & (self.groups == g)].mean() for g in np.unique(self.groups)] for mask in masks]
        return max(max(own) - min(own) for own in rates)

    def accuracy(self, shares: np.ndarray) -> float:
        """Share of right decisions, expected."""
        return float(np.where(self.y == 1, shares, 1 - shares).mean())


def parts_of(table: Table) -> tuple[Part, Part]:
    """Training rows, 70 %, and new rows."""
    whole = (table.X, (table.y > 0).astype(int), table.groups)
    divided = train_test_split(*whole, train_size=0.7, random_state=0, stratify=whole[1])
    return Part(*divided[::2]), Part(*divided[1::2])


@contextmanager
def counted_passes(size: int) -> Iterator[list[float]]:
    """Collect the share of the ``size`` numbers of X that every product of a fit reads."""
    read: list[float] = []

    def counting(function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(X: Any, *args: Any) -> Any:
            read.append(X.shape[0] * X.shape[1] / size)
            return function(X, *args)

        return counted

    with patch.multiple(linear, **{name: counting(getattr(linear, name)) for name in PRODUCTS}):
        yield read


def lines(train: Part, new: Part, notion: str, kappa: float, repeats: int) -> list[dict[str, Any]]:
    """A line for the reduction, and one for each of ours."""

    def reduction() -> Any:
        model = ExponentiatedGradient(LogisticRegression(max_iter=1000), NOTIONS[notion](difference_bound=kappa))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer versions of pandas warn of what Fairlearn does
            return model.fit(train.X, train.y, sensitive_features=train.groups)

    found, seconds = timed(reduction)
    times = {"reduction": [seconds]}

    def line(method: str, shares_of: Callable[[Part], np.ndarray], **columns: Any) -> dict[str, Any]:
        trained, unseen = shares_of(train), shares_of(new)
        gaps = {"gap": train.gap(notion, trained), "new gap": new.gap(notion, unseen)}
        accuracies = {"accuracy": train.accuracy(trained), "new accuracy": new.accuracy(unseen)}
        return {"method": method, **columns, **gaps, **accuracies}

    rows = [line("reduction", lambda part: found._pmf_predict(part.X)[:, 1])]
    own: dict[str, RateParityClassifier] = {}
    for objective, by_group in product(("logistic", "zero_one"), (False, True)):
        own[f"{objective}{', by group' if by_group else ''}"] = RateParityClassifier(
            rows[0]["gap"],
            constraint=notion,
            objective=objective,
            group_interactions=by_group,
            new_row_folds=None,
            random_state=0,
        )
    for name, model in own.items():
        with counted_passes(train.X.size) as read:
            model.fit(train.X, train.y, sensitive_features=train.groups)

        def decided(part: Part, model: RateParityClassifier = model) -> np.ndarray:
            groups = {"sensitive_features": part.groups} if model.group_interactions else {}
            return model.predict(part.X, **groups).astype(float)

        counts = {"evaluations": model.n_evaluations_, "passes": sum(read), "objective": model.objective_}
        rows.append(line(name, decided, solver=model.solver_, status=model.status_, **counts))
        times[name] = []
    for _ in range(repeats):
        for name, model in own.items():
            times[name].append(timed(lambda m=model: m.fit(train.X, train.y, sensitive_features=train.groups))[1])
        if len(times["reduction"]) < repeats and seconds < 10:  # the longest ones only once
            times["reduction"].append(timed(reduction)[1])
    for row in rows:
        row["seconds"] = float(np.median(times[row["method"]]))
        row["times faster"] = float(np.median(times["reduction"])) / row["seconds"]
    return rows


def main(arguments: list[str] | None = None) -> None:
    """Measure, write the CSV and print it."""
    parser = command_line(__doc__)
    add_names(parser, "--data", DATA)
    parser.add_argument("--repeats", type=int, default=3, help="runs of every method")
    options = parser.parse_args(arguments)
    set_threads(1)
    warnings.simplefilter("ignore", ConvergenceWarning)  # the status is in the table
    rows: list[dict[str, Any]] = []
    for data, notion, kappa in tqdm(list(product(options.data, NOTIONS, KAPPAS))):
        train, new = parts_of(DATA[data]())
        what = {"data": data, "rows": train.y.size, "columns": train.X.shape[1], "notion": notion, "bound": kappa}
        rows += [what | row for row in lines(train, new, notion, kappa, options.repeats)]
    found = significant(pd.DataFrame(rows))
    keep(found, "speed", options, shown=found.drop(columns=["accuracy", "status"]))


if __name__ == "__main__":
    main()
