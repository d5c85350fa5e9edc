"""Multipliers of constraints, for a training loop with any optimiser."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairconstrained.torch._graph import Centre
from fairconstrained.torch._modes import AugmentedLagrangian, Mode, NuPI, SmoothedLagrangian, State, Switching
from fairconstrained.torch.batch_terms import ConstraintValues

__all__ = ["MODES", "Multipliers"]

#: Rules by name, see `Multipliers`.
MODES: dict[str, type[Mode]] = {
    "augmented_lagrangian": AugmentedLagrangian,
    "ssl_alm": SmoothedLagrangian,
    "switching": Switching,
    "nupi": NuPI,
}


class Multipliers:
    r"""Multipliers of constraints ``c <= 0`` in a training loop with any optimiser.

    ::

        optimizer.zero_grad()
        multipliers.lagrangian(loss, c).backward()
        optimizer.step()
        multipliers.step()

    With the loss f, the values c of a mini-batch and the multipliers :math:`\lambda`, `lagrangian` returns, and `step`
    does, in the mode

    "augmented_lagrangian"
        :math:`f + \frac{1}{2\rho} (\|\max(\lambda + \rho c, 0)\|^2 - \|\lambda\|^2)`, and then
        :math:`\lambda \leftarrow \mathrm{clip}(\lambda + \eta c, 0, M)`. Options: ``dual_rate=0.05``, the
        :math:`\eta`; ``penalty=1.0``, the :math:`\rho`, with 0 the plain Lagrangian; ``max_multiplier=100.0``, the M.
    "ssl_alm"
        The same plus :math:`\frac{\mu}{2} \|x - z\|^2` for the parameters x, whose centre z then moves by
        :math:`z \leftarrow z + \beta (x - z)`, with the x before the optimiser's step. Further options:
        ``smoothing=2.0``, the :math:`\mu`; ``averaging=0.5``, the :math:`\beta`. In place of the slacks of the paper
        stands their minimum.
    "switching"
        f where :math:`\max_j c_j \le \epsilon`, and w times this maximum elsewhere; there are no multipliers. Options:
        ``tolerance=1e-4``, the :math:`\epsilon` of the first step; ``decay=1.0``, the factor in (0, 1] by which it
        shrinks in every step; ``weight=1.0``, the w.
    "nupi"
        :math:`f + \lambda^\top c`, and then :math:`\xi \leftarrow \xi + (1 - \nu)(c - \xi)` and
        :math:`\lambda \leftarrow \mathrm{clip}(\lambda + \kappa_I c + \kappa_P (1 - \nu)(c - \xi), 0, M)`, with
        the former :math:`\xi` on the right. Options: ``integral_gain=0.01``, the :math:`\kappa_I`;
        ``proportional_gain=1.0``, the :math:`\kappa_P`; ``memory=0.01``, the :math:`\nu` in [0, 1];
        ``max_multiplier=100.0``, the M.

    Values and gradients come from the same rows. Therefore a penalty also acts on the variance of the values over
    mini-batches, and not only on their mean; larger mini-batches or a smaller ``penalty`` reduce this effect.

    Parameters
    ----------
    mode : {"augmented_lagrangian", "ssl_alm", "switching", "nupi"}, default="augmented_lagrangian"
        Rule by which the loss and the constraints are combined, and by which the multipliers move.
    parameters : iterable of Tensor, optional
        Parameters of the network, for the centre of "ssl_alm" and for no other mode.
    **options
        Options of the mode, see above.

    Raises
    ------
    ValueError
        For an unknown mode or option or a number out of range, if "ssl_alm" has no parameters that require a gradient,
        and if another mode is given some.

    References
    ----------
    Nocedal, Wright (2006), Numerical Optimization, section 17.4 (augmented Lagrangian of inequalities). Kliachkin,
    Lepsova, Bareilles, Marecek, arXiv:2507.04033, Algorithms 2 (SSL-ALM) and 3 (switching). Sohrabi, Ramirez, Zhang,
    Lacoste-Julien, Gallego-Posada, ICML 2024, arXiv:2406.04558, Algorithm 1 and eq. 15 (nuPI).
    """

    def __init__(
        self, mode: str = "augmented_lagrangian", parameters: Iterable[Tensor] | None = None, **options: Any
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"mode must be one of {sorted(MODES)}, got {mode!r}.")
        known = [field.name for field in fields(MODES[mode])]
        unknown = sorted(options.keys() - known)
        if unknown:
            raise ValueError(f"mode {mode!r} has no options {unknown}; it has {known}.")
        self.mode, self._rule = mode, MODES[mode](**options)
        self._parameters = [] if parameters is None else [p for p in parameters if p.requires_grad]
        if bool(self._parameters) != (mode == "ssl_alm"):
            raise ValueError(
                "mode 'ssl_alm' needs the parameters of the network, which no other mode takes: "
                "Multipliers('ssl_alm', network.parameters())."
            )
        self._centre = Centre(self._parameters)
        self._sizes: list[int] = []
        self._state: State = {name: np.empty(0) for name in self._rule.vectors}
        self._names: tuple[str, ...] = ()
        self._n_steps = 0
        self._last: np.ndarray | None = None

    def lagrangian(self, loss: Tensor, *constraints: ConstraintValues | Tensor) -> Tensor:
        """Return the function whose gradient the optimiser follows.

        Parameters
        ----------
        loss : Tensor of shape ()
        *constraints : ConstraintValues, or Tensor of shape (n_components,)
            Values that are at most 0 where a constraint is satisfied. In every call the same constraints, which may
            get further components at the end.

        Returns
        -------
        lagrangian : Tensor of shape ()

        Raises
        ------
        ValueError
            If there is no constraint, if there are other constraints than before or fewer components, or if values are
            not finite, from which multipliers would not recover.
        """
        if not constraints:
            raise ValueError("lagrangian takes at least one constraint; without any, follow the loss itself.")
        parts = _parts(constraints)
        sizes = [part.numbers.size for part in parts]
        if sizes != self._sizes:
            self._resize(sizes)
            self._names = tuple(chain.from_iterable(map(_names, range(len(parts)), parts)))
        self._last = _joined(parts)
        weights, constant, with_loss = self._rule.combined(self._last, self._state, self._n_steps)
        combined, first = loss if with_loss else torch.zeros_like(loss), 0
        for part, size in zip(parts, sizes, strict=True):
            combined = combined + part.weighted(weights[first : first + size], constant)
            first, constant = first + size, 0.0
        if not self._parameters:
            return combined
        return self._centre.added(combined, self._rule.envelope[0])

    def step(self, *constraints: ConstraintValues | Tensor) -> None:
        """Move the multipliers, after the optimiser's step.

        Parameters
        ----------
        *constraints : ConstraintValues, or Tensor of shape (n_components,), optional
            Values that the multipliers follow, for instance of all rows or of another mini-batch. Without any, those
            that `lagrangian` was given last.

        Raises
        ------
        RuntimeError
            If `lagrangian` was not called since the last step.
        ValueError
            If there are other components than it had, or values that are not finite.
        """
        if self._last is None:
            raise RuntimeError("step follows lagrangian, which was not called since the last step.")
        values = _joined(_parts(constraints)) if constraints else self._last
        if values.size != self._last.size:
            raise ValueError(f"step takes the {self._last.size} components of lagrangian, got {values.size}.")
        self._state = self._rule.moved(values, self._state)
        if self._parameters:
            self._centre.follow(self._rule.envelope[1])
        self._n_steps, self._last = self._n_steps + 1, None

    @property
    def values(self) -> Tensor | None:
        """Multipliers of the components; Tensor of shape (n_components,), or None in a mode without multipliers."""
        known = self._state.get("multipliers")
        return None if known is None else torch.from_numpy(known.copy())

    def by_name(self) -> dict[str, float] | None:
        """Return the multipliers by the names of the components; None in a mode without multipliers."""
        return None if self.values is None else dict(zip(self._names, self.values.tolist(), strict=True))

    def state_dict(self) -> dict[str, Any]:
        """Return all that changes in training, for ``torch.save``; the mode and its options are not part of it."""
        return {
            "mode": self.mode,
            "n_steps": self._n_steps,
            "sizes": list(self._sizes),
            "names": self._names,
            "vectors": {name: torch.from_numpy(vector.copy()) for name, vector in self._state.items()},
            "centre": self._centre.vector.clone(),
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a `state_dict` of the same mode and, for "ssl_alm", of a network of the same shape.

        Raises
        ------
        ValueError
            If the mode is another one, or the network has another number of parameters.
        """
        n_parameters = state_dict["centre"].numel()
        if state_dict["mode"] != self.mode or n_parameters != self._centre.vector.numel():
            raise ValueError(
                f"the state is one of mode {state_dict['mode']!r} and {n_parameters} parameters; here the mode is "
                f"{self.mode!r}, with {self._centre.vector.numel()} parameters."
            )
        self._n_steps, self._sizes = state_dict["n_steps"], list(state_dict["sizes"])
        self._names = tuple(state_dict["names"])
        self._state = {name: vector.cpu().numpy().copy() for name, vector in state_dict["vectors"].items()}
        self._centre.vector = state_dict["centre"].to(self._centre.vector, copy=True)
        self._last = None

    def _resize(self, sizes: list[int]) -> None:
        """Give new components zeros, at the end of their constraint."""
        known = self._sizes or [0] * len(sizes)
        if len(known) != len(sizes) or any(new < old for new, old in zip(sizes, known, strict=True)):
            raise ValueError(
                f"the constraints have {sizes} components, and had {known}: they have to be the same constraints in "
                "every call, and may only get further components."
            )
        added = [new - old for new, old in zip(sizes, known, strict=True)]
        ends = np.repeat(np.cumsum(known), added)
        self._state = {name: np.insert(vector, ends, 0.0) for name, vector in self._state.items()}
        self._sizes = sizes


class _Plain:
    """Values of a constraint that is no more than a tensor."""

    def __init__(self, values: Tensor) -> None:
        self.values = values.reshape(-1)
        self.numbers = self.values.detach().to("cpu", torch.float64).numpy()

    def weighted(self, weights: np.ndarray, constant: float) -> Tensor:
        return torch.from_numpy(weights).to(self.values) @ self.values + constant

    @property
    def names(self) -> tuple[str, ...]:
        return ()


def _parts(constraints: Sequence[ConstraintValues | Tensor]) -> list[_Plain | ConstraintValues]:
    """Values of every constraint, also of one that is no more than a tensor."""
    return [_Plain(c) if isinstance(c, Tensor) else c for c in constraints]


def _joined(parts: Sequence[_Plain | ConstraintValues]) -> np.ndarray:
    """Values of all components; ndarray of shape (n_components,). Raises ValueError if one is not finite."""
    values = parts[0].numbers if len(parts) == 1 else np.concatenate([part.numbers for part in parts])
    if not np.isfinite(values).all():
        raise ValueError(
            "the constraints have values that are not finite, as the scores do where training has diverged. Take a "
            "smaller learning rate, or skip this mini-batch."
        )
    return values


def _names(place: int, part: _Plain | ConstraintValues) -> tuple[str, ...]:
    """Names of the components of a constraint; their numbers where it has no names."""
    return part.names or tuple(f"{place}[{k}]" for k in range(part.numbers.size))
