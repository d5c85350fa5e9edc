"""A file as labels, scores, decisions, groups and weights; errors say which column, and in which lines."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from fairconstrained.cells import effective_size
from fairconstrained.checks.messages import meant, shortened, warn_user
from fairconstrained.exceptions import FairnessWarning

__all__ = ["AuditTable"]

#: Readers of files by the end of their names; all others are read as CSV.
_READERS: dict[str, Callable[[Path, str], pd.DataFrame]] = {
    ".parquet": lambda path, separator: pd.read_parquet(path),
    ".pq": lambda path, separator: pd.read_parquet(path),
}


@dataclass(frozen=True, eq=False)
class AuditTable:
    """Columns of a file that an audit needs, all without missing values."""

    labels: pd.Series
    groups: pd.DataFrame
    scores: pd.Series | None
    decisions: pd.Series | None
    weights: pd.Series | None
    strata: pd.DataFrame | None
    #: Positive label, as it stands in the file.
    pos_label: Any
    #: Scores above it are positive; None where the decisions are given and the scores tell no threshold.
    threshold: float | None

    @classmethod
    def read(cls, options: Namespace) -> AuditTable:
        """Read the file and check its columns.

        Raises ValueError if a column is missing, has missing values, or values of the wrong kind, OSError if there is
        no such file, and ImportError if the library that reads it is missing.
        """
        if options.score is None and options.decision is None:
            raise ValueError("name the column of the scores with --score, or that of the decisions with --decision.")
        single = [options.label, options.score, options.decision, options.weight]
        wanted = [name for name in [*single, *options.groups, *options.strata] if name is not None]
        frame = _columns(_table(options.file, options.separator), list(dict.fromkeys(wanted)), options.file)
        labels, scores = frame[options.label], _numbers(frame, options.score)
        return cls(
            labels=labels,
            groups=_binned(frame[options.groups], dict(options.bins)),
            scores=scores,
            decisions=None if options.decision is None else _decisions(frame[options.decision], labels),
            weights=_numbers(frame, options.weight),
            strata=frame[options.strata] if options.strata else None,
            pos_label=_positive(labels, options.pos_label),
            threshold=_threshold(scores, options.threshold, decided=options.decision is not None),
        )

    @property
    def reading(self) -> str:
        """Return one sentence on how labels and decisions are read."""
        decided = f"the column {self.decisions.name!r} says" if self.decisions is not None else self._scored
        return f"Label {self.labels.name!r}: {self.pos_label!r} is positive. Decision: {decided}."

    def warn_of_reversed(self) -> None:
        """Warn where the larger one of two labels, which is taken as positive, has clearly lower scores."""
        is_positive = self.labels == self.pos_label
        weights = np.ones(len(self.labels)) if self.weights is None else self.weights.to_numpy()
        by_label = weights[is_positive], weights[~is_positive]
        if self.scores is None or not all(own.any() for own in by_label):
            return  # there is no AUC
        auc = roc_auc_score(is_positive, self.scores, sample_weight=weights)
        n1, n0 = map(effective_size, by_label)
        # scores that say nothing of the label have an AUC below 0.5 in every second file; few of them are below it by
        # more than two standard errors, whose formula is that of such scores
        if auc < 0.5 - 2 * np.sqrt((n1 + n0 + 1) / (12 * n1 * n0)):
            (other,) = set(self.labels.tolist()) - {self.pos_label}
            warn_user(
                f"{self.pos_label!r} is taken as the positive label because it is the larger one, and its rows have "
                f"the lower scores. If a high score speaks for {other!r}, add\n--pos-label={shlex.quote(str(other))}",
                FairnessWarning,
            )

    @property
    def _scored(self) -> str:
        assert self.scores is not None
        assert self.threshold is not None
        return f"positive where {self.scores.name!r} is above {self.threshold:g}"


def _table(path: Path, separator: str) -> pd.DataFrame:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    try:
        return _READERS.get(path.suffix.lower(), _csv)(path, separator)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text in UTF-8 ({error.reason}): save it as “CSV UTF-8”.") from error
    except pd.errors.ParserError as error:
        raise ValueError(f"{path} cannot be read as a table: {error}") from error
    except pd.errors.EmptyDataError as error:
        raise ValueError(f"{path} is empty.") from error


def _csv(path: Path, separator: str) -> pd.DataFrame:
    # the fast engine of pandas takes separators of one byte only
    return pd.read_csv(path, sep=separator, engine="c" if separator.isascii() else "python")


def _columns(frame: pd.DataFrame, wanted: list[str], path: Path) -> pd.DataFrame:
    """The wanted columns, all of which are there, and without missing values."""
    known = [str(name).strip() for name in frame.columns]  # as in the arguments
    for name in wanted:
        if known.count(name) > 1:
            raise ValueError(f"{path} has several columns {name!r}, up to blanks around the name: rename them.")
        if name not in known:
            hint = " (is --separator right?)" if len(known) == 1 else ""
            raise ValueError(
                f"{path} has no column {name!r}.{meant(name, known)} Its columns are {shortened(known)}{hint}."
            )
    if frame.empty:
        raise ValueError(f"{path} has columns, but no rows.")
    found = frame.set_axis(known, axis=1)[wanted]
    for name in wanted:
        empty = np.flatnonzero(found[name].isna())
        if empty.size:
            raise ValueError(
                f"column {name!r} has no value, or a word for none such as NA, in {empty.size} of {len(found)} rows, "
                f"{_rows(empty)}. Leave these rows out of the file; in a column of groups, a word such as “unknown” "
                "makes them a group."
            )
    return found


def _rows(places: np.ndarray) -> str:
    """Rows by their number in the table, which has no lines where the file is no text."""
    return f"row{'s' * (places.size > 1)} {shortened(places + 1, most=5).strip('[]')} (counted without the names)"


def _numbers(frame: pd.DataFrame, name: str | None) -> pd.Series | None:
    """A column as numbers; None if there is no name."""
    if name is None:
        return None
    column = frame[name]
    numbers = pd.to_numeric(column, errors="coerce").astype(float)
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if wrong.size:
        raise ValueError(
            f"column {name!r} should hold numbers, and {wrong.size} of {len(column)} values are not, such as "
            f"{column.iloc[wrong[0]]!r} in {_rows(wrong[:1])}. Write numbers with a decimal point, and without "
            "units or signs such as %."
        )
    return numbers


def _decisions(decisions: pd.Series, labels: pd.Series) -> pd.Series:
    """The decisions, which are labels."""
    unknown = sorted(set(decisions.unique().tolist()) - set(labels.unique().tolist()), key=str)
    if unknown:
        raise ValueError(
            f"column {decisions.name!r} should hold labels of column {labels.name!r}, {shortened(labels.unique())}, "
            f"and holds {shortened(unknown)}. Write the same two words or numbers in both columns."
        )
    return decisions


def _positive(labels: pd.Series, asked: str | None) -> Any:
    """The positive label: the one that was asked for, or the larger of two."""
    known = sorted(labels.unique().tolist(), key=lambda value: (str(type(value)), value))
    if asked is None:
        if len(known) == 2:
            return known[1]
        few = "one label only" if len(known) == 1 else f"{len(known)} labels"
        raise ValueError(
            f"column {labels.name!r} has {few}: {shortened(known)}. "
            + ("Both labels are needed." if len(known) == 1 else "Say with --pos-label which one is positive.")
        )
    found = [value for value in known if str(value) == asked or _is_number(value, asked)]
    if not found:
        raise ValueError(f"--pos-label {asked} is not among the labels of column {labels.name!r}: {shortened(known)}.")
    return found[0]


def _is_number(value: Any, text: str) -> bool:
    """Whether a number is the one that a text says: 1.0 in a file is 1 on the command line."""
    try:
        return not isinstance(value, str) and float(value) == float(text)
    except ValueError:
        return False


def _threshold(scores: pd.Series | None, asked: float | None, decided: bool) -> float | None:
    if scores is None:
        return None
    if scores.isin([0, 1]).all():
        raise ValueError(
            f"column {scores.name!r} holds nothing but 0 and 1, so these are decisions: name it with --decision, not "
            "with --score."
        )
    if asked is not None:
        return asked
    if scores.between(0, 1).all():
        return 0.5
    if scores.min() < 0:
        return 0.0
    if not decided:
        raise ValueError(
            f"column {scores.name!r} has scores from {scores.min():g} to {scores.max():g}, neither probabilities nor "
            "log-odds: say with --threshold above which score a decision is positive."
        )
    return None


def _binned(groups: pd.DataFrame, edges: dict[str, list[float]]) -> pd.DataFrame:
    """The columns of groups, with ranges of numbers, in their order, in place of those that are cut."""
    for name, cuts in edges.items():
        if name not in groups:
            raise ValueError(f"--bins cuts {name!r}, which is none of the columns of --groups: {list(groups)}.")
        numbers = _numbers(groups, name)
        assert numbers is not None
        inner = [f"{low:g} to below {high:g}" for low, high in pairwise(cuts)]
        names = np.array([f"below {cuts[0]:g}", *inner, f"{cuts[-1]:g} or more"], dtype=object)
        places = np.searchsorted(cuts, numbers, side="right")
        ranges = pd.CategoricalDtype(names[np.unique(places)].tolist())
        groups = groups.assign(**{name: pd.Series(names[places], index=groups.index, dtype=ranges)})
    return groups
