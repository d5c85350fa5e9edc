"""Which rows a model was fitted on: it remembers them by hashes, until it is told to forget them."""

from __future__ import annotations

from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from fairconstrained.estimators.row_sketch import RowSketch

__all__ = ["RemembersRows"]


class RemembersRows:
    """Mixin of estimators that remember the rows of their fit, so that they are not judged on them by mistake."""

    _rows_seen: RowSketch | None

    def forget_rows(self) -> Self:
        """Forget which rows the model was fitted on, for instance before it is given to others.

        A fitted model keeps hashes of at most 5,000 of its rows, 60 kB, by which
        :func:`~fairconstrained.certification.certify` and reports know the rows of the fit. Without them nothing is
        checked, and they say so. Predictions stay the same. `fit` remembers its rows again.

        Returns
        -------
        self : estimator

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        """
        check_is_fitted(self)
        self._rows_seen = None
        return self

    def _remember_rows(self, X: Any, among_others: bool = False) -> None:
        """Remember validated rows; ``among_others`` if there were some before, unless those are forgotten."""
        if not among_others:
            self._rows_seen = RowSketch.of(X)
        elif self._rows_seen is not None:
            self._rows_seen = self._rows_seen.joined(X)

    def _share_rows(self, other: RemembersRows) -> None:
        """Keep one record with another model that was fitted on the same rows, as both may be stored together."""
        self._rows_seen = other._rows_seen
