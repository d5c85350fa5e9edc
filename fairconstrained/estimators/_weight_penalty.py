"""Settings that keep a network from memorising the rows of a bound."""

from __future__ import annotations

import numpy as np

from fairconstrained.data import FairData

__all__ = ["error_weight", "weight_penalty"]

#: Weight of the penalty for a smallest group of one row, and its exponent in the number of rows: chosen by the gaps and
#: errors on new rows of seven data sets, whose smallest groups have 1,385 to 34,000 rows.
_ONE_ROW, _EXPONENT = 4000.0, -1.5
#: Largest weight. From here on more of it mostly takes from the model.
_MOST = 0.05
#: Groups of fewer rows than bounds resolve by default; they do not decide.
_FEWEST = 50
#: Share of the smallest group from which on errors are counted in training.
_SHARE = 0.1


def weight_penalty(data: FairData) -> float:
    """Return the weight of the l2 penalty for networks with bounds on differences between the groups.

    The rows of a group weigh about as much in a bound as those of all others, however few they are. So what keeps a
    network from memorising them goes by their number, and is the same for every ``kappa``.

    Returns
    -------
    weight : float
        4000 times the rows of the smallest group of 50 rows and more to the power -1.5, at most 0.05.
    """
    return min(_ONE_ROW * max(_rows_of_smallest(data), 1) ** _EXPONENT, _MOST)


def error_weight(data: FairData) -> float:
    """Return the weight of a smooth number of errors, see `AdamLagrangian`.

    It makes a network meet its bound by a few large losses of the better group in place of many wrong decisions. Where
    nearly all rows are of that group, it is these losses that do not hold on new rows.

    Returns
    -------
    weight : float
        1 where the smallest group of 50 rows and more has a tenth of all rows and more, else 0.
    """
    return float(_rows_of_smallest(data) >= _SHARE * data.n_samples)


def _rows_of_smallest(data: FairData) -> int:
    """Rows of the smallest group that bounds compare by default; 0 if there is none."""
    n_rows = np.bincount(data.codes, minlength=data.n_groups)
    n_rows = n_rows[: data.n_groups - data.n_ignored] if data.unions is None else data.unions.members @ n_rows
    return int(n_rows[n_rows >= _FEWEST].min(initial=n_rows.max())) if (n_rows >= _FEWEST).any() else 0
