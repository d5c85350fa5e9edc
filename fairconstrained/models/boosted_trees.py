"""Boosted trees of LightGBM as a model: its states are ensembles, and it computes scores from them."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from typing_extensions import override

from fairconstrained.data import FairData
from fairconstrained.models.base import Model
from fairconstrained.models.parts import Rescaling, ScoreShifts

if TYPE_CHECKING:
    from lightgbm import Booster

__all__ = [
    "BinnedRows", "BoostedTrees", "Ensemble", "Growth", "lightgbm", "lightgbm_names", "mean_of_unseen", "unseen_rows",
]  # fmt: skip

#: Lines of LightGBM's text format whose numbers are in units of the scores.
_IN_SCORES = re.compile(r"^(leaf_value|internal_value)=(.*)$", re.MULTILINE)
#: Characters that LightGBM refuses in names of features, or replaces with a warning.
_REFUSED_IN_NAMES = re.compile(r"[\s\",:\[\]{}]+")
#: Folds from which on a booster is grown without two of them, and sees at least half of the rows.
_FOLDS_FOR_TWO = 4
_TREES = re.compile(r"^Tree=\d+$.*?(?=^Tree=\d+$|^end of trees$)", re.MULTILINE | re.DOTALL)


def lightgbm() -> Any:
    """Import LightGBM, which the package does not need for anything else.

    Raises ImportError if it is not installed; the message has the command that installs it.
    """
    try:
        import lightgbm
    except ImportError as error:
        raise ImportError(
            "boosted trees need LightGBM, which is not installed; run: pip install 'fairconstrained[boosting]'"
        ) from error
    return lightgbm


def lightgbm_names() -> dict[str, str]:
    """LightGBM's main name of a parameter, by every name that it takes for it."""
    names = lightgbm().basic._ConfigAliases._get_all_param_aliases()
    return {alias: name for name, aliases in names.items() for alias in aliases}


class Part(NamedTuple):
    """Consecutive trees of a booster, and the factor of their sum."""

    booster: Booster
    #: At least 1.
    n_trees: int
    factor: float = 1.0
    #: Number of the first of them.
    first: int = 0


@dataclass(frozen=True, eq=False)
class Ensemble:
    """State of boosted trees: ``constant + sum_p factor_p sum of n_trees_p trees of booster p``."""

    #: More than one where it is a mean of boosters, or where a fit has gone on from an earlier one; none where no tree
    #: has been grown.
    parts: tuple[Part, ...] = ()
    constant: float = 0.0

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return sum(part.n_trees for part in self.parts)

    def scores(self, X: Any) -> np.ndarray:
        """Scores of rows; ndarray of shape (n_samples,)."""
        scores = np.full(X.shape[0], self.constant)
        for part in self.parts:
            sums = part.booster.predict(_as_taken(X), part.first, part.n_trees, raw_score=True)
            scores += part.factor * np.asarray(sums)
        return scores

    def out_of_fold(self, folds: np.ndarray, n_folds: int) -> OutOfFold:
        """State with the out-of-fold scores of the rows in ``folds``, of the boosters whose `mean` this is."""
        return OutOfFold(self.split(n_folds), unseen_rows(folds, n_folds))

    @classmethod
    def mean(cls, ensembles: Sequence[Ensemble]) -> Ensemble:
        """The mean of ensembles."""
        share = 1 / len(ensembles)
        parts = [part._replace(factor=share * part.factor) for each in ensembles for part in each.parts]
        return cls(tuple(parts), share * sum(each.constant for each in ensembles))

    def split(self, n: int) -> tuple[Ensemble, ...]:
        """The ensembles with as many trees each whose `mean` this is, also after it has been `joined`."""
        parts = self.parts
        if parts and len(parts) % n:
            (joined,) = parts
            size = joined.n_trees // n
            parts = tuple(joined._replace(n_trees=size, first=joined.first + i * size) for i in range(n))
        size = len(parts) // n
        each = (parts[i * size : (i + 1) * size] for i in range(n))
        return tuple(Ensemble(tuple(p._replace(factor=n * p.factor) for p in own), self.constant) for own in each)

    def joined(self) -> Ensemble:
        """Return the ensemble as one booster, which alone has the same scores: all trees, factors and the constant.

        The leaves of every tree are multiplied, and those of the first one of every part get their share of the
        constant.
        """
        if not self.parts:
            return self
        trees: list[str] = []
        for part in self.parts:
            text = part.booster.model_to_string(num_iteration=part.n_trees, start_iteration=part.first)
            first, *rest = _TREES.findall(text)
            trees.append(_scaled(first, part.factor, self.constant / len(self.parts)))
            trees += [_scaled(tree, part.factor, 0.0) for tree in rest]
        begin, end = text.index("Tree=0"), text.index("end of trees")
        head = re.sub(r"^tree_sizes=.*\n", "", text[:begin], flags=re.MULTILINE)  # the sizes are other ones now
        numbered = [re.sub(r"^Tree=\d+", f"Tree={i}", tree) for i, tree in enumerate(trees)]
        booster = lightgbm().Booster(model_str=head + "".join(numbered) + text[end:])
        return Ensemble((Part(booster, len(trees)),))


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """State for the rows that boosters were grown on: each is scored by the boosters that have not seen it."""

    boosters: tuple[Ensemble, ...]
    #: Numbers of the rows that each of the boosters has not seen.
    unseen: list[np.ndarray]  # of int

    def scores(self, X: Any) -> np.ndarray:
        """Scores of the rows; ndarray of shape (n_samples,)."""
        pairs = zip(self.boosters, self.unseen, strict=True)
        return mean_of_unseen(self.unseen, (booster.scores(X[rows]) for booster, rows in pairs))


def unseen_rows(folds: np.ndarray, n_folds: int) -> list[np.ndarray]:
    """Numbers of the rows that each of ``n_folds`` boosters is grown without, ascending.

    These are the rows of one fold, and of four folds or more those of the next one as well. Then the out-of-fold score
    of a row is the mean of two boosters. That of a single one has more of the noise that trees memorise, which
    makes decisions of groups alike, so that the gap of the mean of all boosters is larger.

    Parameters
    ----------
    folds : ndarray of int, of shape (n_samples,)
        Number of the fold of every row.
    """
    n_left_out = 2 if n_folds >= _FOLDS_FOR_TWO else 1
    return [np.flatnonzero((folds - fold) % n_folds < n_left_out) for fold in range(n_folds)]


def mean_of_unseen(unseen: Sequence[np.ndarray], scores: Iterable[np.ndarray]) -> np.ndarray:
    """Mean of the scores of every row over the boosters that have not seen it; ndarray of shape (n_samples,).

    Parameters
    ----------
    unseen : sequence of ndarray of int
        Numbers of the rows that each of the boosters has not seen; all rows are among them.
    scores : iterable of ndarray
        Scores of these rows by each of the boosters.
    """
    count = np.bincount(np.concatenate(unseen))
    sums = np.zeros(count.size)
    for rows, own in zip(unseen, scores, strict=True):
        sums[rows] += own
    return sums / count


def _as_taken(X: Any) -> Any:
    """Rows as LightGBM takes them: of sparse ones it knows matrices and no arrays."""
    return sp.csr_matrix(X) if sp.issparse(X) else X


def _scaled(tree: str, factor: float, constant: float) -> str:
    """A tree in LightGBM's text format with other values: ``constant + factor * value``."""
    if factor == 1 and not constant:
        return tree

    def line(found: re.Match[str]) -> str:
        values = constant + factor * np.array(found[2].split(), dtype=float)
        return f"{found[1]}={' '.join(map(repr, values.tolist()))}"

    return _IN_SCORES.sub(line, tree)


def _names(names: Sequence[str]) -> list[str] | str:
    """Names as LightGBM takes them; it numbers the features where there are none that differ."""
    taken = [_REFUSED_IN_NAMES.sub("_", name) for name in names]
    return taken if taken and len(set(taken)) == len(taken) else "auto"


class BinnedRows(NamedTuple):
    """Rows in LightGBM's bins, for boosters that grow on all or some of them."""

    dataset: Any  # lightgbm.Dataset
    #: Features, for the scores of trees to begin with.
    X: Any  # array of shape (n_samples, n_features)
    #: Parameters of LightGBM.
    params: Mapping[str, Any]

    def scores(self, state: Ensemble) -> np.ndarray:
        """Scores of all rows by trees; ndarray of shape (n_samples,)."""
        return state.scores(self.X)

    def part(self, numbers: np.ndarray, scores: np.ndarray) -> Any:
        """Some of the rows, ascending, with the scores that a booster begins with; a lightgbm.Dataset."""
        is_all = numbers.size == scores.size
        rows = self.dataset if is_all else self.dataset.subset(numbers, params=self.params).construct()
        return rows.set_init_score(scores[numbers])


class Growth:
    """Trees that grow on some rows, and the scores that they give to all.

    Parameters
    ----------
    unseen : ndarray of int
        Numbers of the rows that no tree is grown on, ascending.
    begin : Ensemble
        State that the trees are added to.

    Attributes
    ----------
    unseen : ndarray of int
    scores : ndarray of shape (n_samples,)
        Scores of all rows; another array after every tree.
    """

    def __init__(self, rows: BinnedRows, unseen: np.ndarray, begin: Ensemble) -> None:
        self.unseen, self._begin, self.scores = unseen, begin, rows.scores(begin)
        self._seen, self._n_trees = np.setdiff1d(np.arange(self.scores.size), unseen), 0
        # LightGBM leaves out features that no leaf of enough rows can be split by, and fails where none is left.
        features = range(rows.dataset.num_feature())
        self._can_split = any(rows.dataset.feature_num_bin(feature) > 1 for feature in features)
        self._booster = lightgbm().Booster(rows.params, rows.part(self._seen, self.scores))
        if unseen.size:
            self._booster.add_valid(rows.part(unseen, self.scores), "unseen")

    def grow(self, slopes: np.ndarray, curvature: np.ndarray) -> bool:
        """Add a tree along the Newton step; returns whether there was one to add.

        Parameters
        ----------
        slopes, curvature : ndarray of shape (n_samples,)
            First and second derivatives in the scores of all rows.
        """
        if not self._can_split:
            return False
        is_empty = self._booster.update(fobj=lambda *_: (slopes[self._seen], curvature[self._seen]))
        self._follow()
        self._n_trees += not is_empty  # LightGBM keeps a first tree without a split, and counts it
        return not is_empty

    def undo(self) -> None:
        """Take the last tree away."""
        self._booster.rollback_one_iter()
        self._n_trees -= 1
        self._follow()

    def _follow(self) -> None:
        """Read the scores that the trees have led to."""
        found: list[np.ndarray] = []

        def keep(scores: np.ndarray, rows: Any) -> tuple[str, float, bool]:
            found.append(np.array(scores))
            return "kept", 0.0, False

        self._booster.eval_train(keep)
        if not self.unseen.size:
            (self.scores,) = found
            return
        self._booster.eval_valid(keep)
        self.scores = np.empty_like(self.scores)
        self.scores[self._seen], self.scores[self.unseen] = found

    def state(self) -> Ensemble:
        """The ensemble so far."""
        new = (Part(self._booster, self._n_trees),) if self._n_trees else ()
        return replace(self._begin, parts=(*self._begin.parts, *new))


@dataclass(frozen=True, eq=False)
class BoostedTrees(Model):
    """Sums of decision trees, grown by LightGBM.

    Parameters
    ----------
    params : mapping, default={}
        Parameters of LightGBM.
    categorical : sequence of int, default=()
        Numbers of the columns that hold codes of categories.
    n_features : int, default=0
        Number of the features, by which states of other data are told apart.
    names : sequence of str, default=()
        Names of the features, if they have any.
    """

    params: Mapping[str, Any] = field(default_factory=dict)
    categorical: Sequence[int] = ()
    n_features: int = 0
    names: Sequence[str] = ()
    #: Scores of rows that are known from growing the trees, as to compute them again would take as long as a fit.
    _known: list[tuple[Ensemble, FairData, np.ndarray]] = field(default_factory=list)

    name = "boosted_trees"
    state_type = Ensemble
    uses_threads = True

    @property
    @override
    def layout(self) -> Hashable:
        return self.name, self.n_features, tuple(self.categorical)

    def binned(self, data: FairData, **others: Any) -> BinnedRows:
        """The rows for trees that follow given slopes, with ``others`` among the parameters of LightGBM."""
        by_row = not self.params.get("force_col_wise", False)
        params = {"verbosity": -1, "force_row_wise": by_row, **self.params, **others}
        params |= {"objective": "none", "metric": "none", "deterministic": True, "boost_from_average": False}
        columns = {"feature_name": _names(self.names), "categorical_feature": list(self.categorical)}
        rows = lightgbm().Dataset(_as_taken(data.X), data.y.numpy(), params=params, **columns)
        return BinnedRows(rows.construct(), data.X, params)

    def remember(self, state: Ensemble, data: FairData, scores: np.ndarray) -> None:
        """Keep the scores of a state on some rows."""
        self._known.append((state, data, scores))

    @override
    def training_scores(self, state: Ensemble, data: FairData) -> np.ndarray:
        """Implement `Model.training_scores`; of states that are known, with their multiples and shifts, from memory."""
        for known, rows, scores in self._known:
            if rows is data and len(known.parts) == len(state.parts):
                change = _change(known, state)
                if change is not None:
                    factor, shift = change
                    return scores.copy() if change == (1.0, 0.0) else factor * scores + shift
        return state.scores(data.X)

    @override
    def scores(self, state: Ensemble, X: Any, codes: np.ndarray | None = None) -> np.ndarray:
        return state.scores(X)

    @override
    def attributes(self, state: Ensemble, offset: float, scale: float) -> dict[str, Any]:
        """The booster, which alone has the scores in units of the solver; None where there are no trees."""
        joined = state.joined()
        return {"booster_": joined.parts[0].booster if joined.parts else None, "n_trees_": state.n_trees}

    @override
    def portable(self) -> BoostedTrees:
        return replace(self, _known=[])

    @override
    def shifts(self, data: FairData, shared: bool = False) -> ScoreShifts:
        return _Shifts()

    @override
    def rescaling(self, state: Ensemble, data: FairData) -> Rescaling:
        return _Rescaled(state, data.n_samples)


def _change(known: Ensemble, state: Ensemble) -> tuple[float, float] | None:
    """Factor and shift that lead from the scores of one state to those of another one; None where there are none."""
    if known is state:
        return 1.0, 0.0
    pairs = list(zip(known.parts, state.parts, strict=True))
    if any((a.booster, a.n_trees, a.first) != (b.booster, b.n_trees, b.first) for a, b in pairs):
        return None
    factor = pairs[0][1].factor / pairs[0][0].factor if pairs else 1.0
    if not all(np.isclose(b.factor, factor * a.factor, rtol=1e-12, atol=0) for a, b in pairs):
        return None
    return factor, state.constant - factor * known.constant


class _Shifts(ScoreShifts):
    n_shifts = 1

    @override
    def moved(self, state: Ensemble, offsets: np.ndarray) -> Ensemble:
        return replace(state, constant=state.constant + float(offsets[0]))


class _Rescaled(Rescaling):
    can_shift = True

    def __init__(self, state: Ensemble, n_samples: int) -> None:
        self._state, self.signs = state, np.ones(n_samples)

    @override
    def at(self, factor: float, shift: float) -> Ensemble:
        parts = tuple(part._replace(factor=factor * part.factor) for part in self._state.parts)
        return Ensemble(parts if factor else (), factor * self._state.constant + shift)
