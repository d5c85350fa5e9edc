"""`FairnessPath`: the models for many values of kappa, their scores and gaps, and the choice of one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairconstrained.checks.messages import warn_user
from fairconstrained.estimators.remembers import RemembersRows
from fairconstrained.estimators.saving import PlainState
from fairconstrained.exceptions import FairnessWarning
from fairconstrained.model_selection import BestFeasible
from fairconstrained.model_selection.pipelines import steps_of
from fairconstrained.model_selection.selection import ROUNDING
from fairconstrained.plotting import ParetoFrontDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FairnessPath"]

_GAP = "gap"


@dataclass(frozen=True, eq=False, repr=False)
class FairnessPath(PlainState):
    """Result of :func:`fairness_path`: a model for every value of kappa, and a table of their scores and gaps.

    Attributes
    ----------
    table : DataFrame of shape (n_kappas, n_columns)
        One row for every value, from loose to tight. Where the model of a tighter bound has the better objective, it is
        the model of the looser one too:

        - ``kappa``: the value, infinity for no bound; that of ``param`` where another parameter takes the values;
        - ``objective``, ``status``, ``n_evaluations``: ``objective_``, ``status_`` and ``n_evaluations_`` of the model;
        - ``gap``: the largest of the exact metrics that are bounded, on the training rows; of several also each of
          them, as ``gap_<name>``. A floor is no gap: it has this column only, or its ``gap`` is NaN;
        - ``new_row_gap``, ``new_row_standard_error``: the largest estimate of a bounded metric for new rows, see
          ``new_row_gaps_`` of the estimators, and its standard error; NaN where there is none;
        - ``price``: by how much the least objective would fall per unit of kappa, to first order, the sum of
          ``prices_`` (where ``param`` is the kappa of one constraint, that of this one); ``multipliers``: a dict of
          those that are not zero. NaN and None where they are not known: the solver has no multipliers, ``param`` is no
          bound on a gap, or the fit missed its bound and the model of a tighter one took its place;
        - ``seconds``: time of the fit on all rows, from the model before;
        - ``train_<score>``: performance on the training rows, greater is better; of boosted trees that of the
          out-of-fold scores, which ``gap`` is about as well;
        - with ``cv``: ``mean_test_<score>``, ``std_test_<score>``, ``mean_test_gap``, ``std_test_gap`` (and of several
          metrics ``mean_test_gap_<name>``, ``std_test_gap_<name>``), the means and standard deviations over the folds
          of what is measured on their held-out rows.
    models : list of estimator
        Fitted on all rows, one for each row of the table. Of a pipeline they are whole pipelines, which share the
        fitted transformers.
    scores : tuple of str
        Names of the measures of performance, the first of which `best` goes by.
    gaps : tuple of str
        Names of the metrics that are bounded.
    n_splits : int
        Number of folds; 0 without ``cv``.

    Examples
    --------
    >>> from fairconstrained import PartialParityClassifier, fairness_path
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, group = make_biased_classification(n_samples=1000, random_state=0)
    >>> path = fairness_path(PartialParityClassifier(), X, y, sensitive_features=group, kappas=[None, 0.2, 0.1])
    >>> path.table["kappa"].tolist()
    [inf, 0.2, 0.1]
    >>> path.best(0.15) is path.models[2]
    True
    """

    table: pd.DataFrame
    models: list[Any]
    scores: tuple[str, ...]
    gaps: tuple[str, ...] = ()
    n_splits: int = 0

    @property
    def kappas(self) -> np.ndarray:
        """The values from loose to tight; ndarray of shape (n_kappas,), infinity for no bound."""
        return self.table["kappa"].to_numpy(dtype=float)

    def best_index(self, bound: float, *, one_standard_error: bool = False, performance: str | None = None) -> int:
        """Row of the table that `best` chooses.

        Parameters
        ----------
        bound, one_standard_error, performance
            Arguments of `best`.

        Returns
        -------
        index : int

        Raises
        ------
        ValueError
            For the same reasons as `best`.

        Warns
        -----
        FairnessWarning
            If no gap is within the bound.
        """
        return self._choose(bound, one_standard_error, performance)

    def best(self, bound: float, *, one_standard_error: bool = False, performance: str | None = None) -> Any:
        """The model with the best performance among those whose gap is at most ``bound``.

        Both are the means over the held-out parts of the folds; without ``cv`` those on the training rows. If no gap is
        within the bound, it is the model with the least gap, and there is a warning.

        Parameters
        ----------
        bound : float
            Largest gap, at least 0.
        one_standard_error : bool, default=False
            Whether to take, of the models within the bound, the one with the tightest kappa whose mean performance is
            within one standard error of the best one's (over the folds, of the best one). Its gap has more room before
            it reaches the bound.
        performance : str, default=None
            Name of the score that decides, one of ``scores``; None is the first one.

        Returns
        -------
        model : estimator
            The best of ``models``.

        Raises
        ------
        ValueError
            If the bound is negative, there is no such measure of performance or it is NaN for all models, if all gaps
            are NaN, as where only floors are bounded, or if ``one_standard_error`` is asked for without two folds or
            more.

        Warns
        -----
        FairnessWarning
            If no gap is within the bound.
        """
        return self.models[self._choose(bound, one_standard_error, performance)]

    def forget_rows(self) -> None:
        """Forget which rows the models were fitted on; see ``forget_rows`` of an estimator."""
        for model in self.models:
            for _, step in steps_of(model):
                if isinstance(step, RemembersRows):
                    step.forget_rows()

    def _choose(self, bound: float, one_standard_error: bool, performance: str | None) -> int:
        """Return the number of the best model; the warning points to the caller of the public method."""
        performance = self.scores[0] if performance is None else performance
        if performance not in self.scores:
            raise ValueError(f"performance must be one of {list(self.scores)}; got {performance!r}.")
        if one_standard_error and self.n_splits < 2:
            raise ValueError(f"one_standard_error needs at least two folds, and the path has {self.n_splits}.")
        prefix = "mean_test_" if self.n_splits else ""
        scores = self.table[(prefix or "train_") + performance].to_numpy(dtype=float)
        gaps = self.table[prefix + _GAP].to_numpy(dtype=float)
        rule = BestFeasible(_GAP, bound, performance)
        if np.isnan(gaps).all():
            raise ValueError(
                "rates are bounded from below only, or the gaps do not exist, so that there is no gap to choose by; "
                "choose one of the models by the columns of the table."
            )
        if np.isnan(scores).all():
            raise ValueError(
                f"{prefix or 'train_'}{performance} is NaN for every model, so that none can be chosen. Name another "
                f"measure as performance, one of {list(self.scores)}, or make the path with other scoring."
            )
        least = float(np.nanmin(gaps[~np.isnan(scores)]))
        if least > bound + ROUNDING:
            # The rule's own warning speaks of held-out gaps in any case, so it is given a bound that can be kept.
            where = "mean held-out" if self.n_splits else "training"
            warn_user(
                f"No model of the path has a {where} gap of at most {bound:g}. The one of least gap, "
                f"{least:.4g}, was chosen; allow a larger bound, add smaller kappas or more rows.",
                FairnessWarning,
            )
            rule.bound = least
        best = rule({f"mean_test_{performance}": scores, f"mean_test_{_GAP}": -gaps})
        if not one_standard_error:
            return best
        error = self.table[f"std_test_{performance}"].iloc[best] / np.sqrt(self.n_splits - 1)
        return int(np.flatnonzero((gaps <= rule.bound + ROUNDING) & (scores >= scores[best] - error))[-1])

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> ParetoFrontDisplay:
        """Draw performance against the gap, see `fairconstrained.plotting.ParetoFrontDisplay.from_path`.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw into; new ones by default.
        **kwargs : object
            Further arguments of `~fairconstrained.plotting.ParetoFrontDisplay.from_path`.

        Returns
        -------
        display : ParetoFrontDisplay
        """
        return ParetoFrontDisplay.from_path(self, ax=ax, **kwargs)

    def __repr__(self) -> str:
        return f"{self._title()}\n{self._overview().to_string()}"

    def _repr_html_(self) -> str:
        return f"<p>{self._title()}</p>{self._overview().to_html()}"

    def _title(self) -> str:
        ends = " to ".join(f"{kappa:.4g}" for kappa in dict.fromkeys(self.kappas[[0, -1]]))
        folds = f", {self.n_splits} folds" if self.n_splits else ""
        return f"FairnessPath of {len(self.models)} models, kappa {ends}{folds}"

    def _overview(self) -> pd.DataFrame:
        """The table without the columns that are too wide to print."""
        return self.table.drop(columns="multipliers").round(4)
