"""Steps of a training loop: `fairconstrained.torch`, the package ``humancompatible-train``, and no constraint at all.

``python -m benchmarks.training_loop [--quick] [--docs]`` writes a CSV. Rows, network (two hidden layers), optimiser
(SGD) and size of mini-batches are the same, in turns in one process with one thread; microseconds of processor time,
medians. Column "rows": each with its own sampler, in torch's loader as in the package's README, or by indices of the
tensors as in our guide; or mini-batches that were drawn beforehand. The package's loop is that of its README, for the
gap of mean losses. ``times_package`` is the time of its step over that of the line, SSL-ALM with SSL-ALM: above 1 the
line is faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, cycle, islice, repeat
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.data import DataLoader, TensorDataset

from benchmarks._common import command_line, keep, parsed, set_threads, significant
from benchmarks.loss_parity.network import new_network
from benchmarks.loss_parity.promises import side_by_side
from fairconstrained.constraints import AUCGap, Constraint, DemographicParity, LossParity, RateGap
from fairconstrained.datasets import make_biased_classification
from fairconstrained.torch import Multipliers, StratifiedBatchSampler, bind

KAPPA, RATE, N_FEATURES = 0.02, 0.01, 20
BATCHES = (16, 128, 512)
#: Bounds whose steps are measured, and whether there is a centre; the package's loop has the first one.
OURS: dict[str, tuple[Constraint, bool]] = {
    "loss parity": (LossParity(KAPPA), False),
    "loss parity, SSL-ALM": (LossParity(KAPPA), True),
    "rates": (RateGap(KAPPA), False),
    "rates on an interval": (DemographicParity(0.1, interval=(0.0, 0.5)), False),
    "AUCs": (AUCGap(KAPPA), False),
}
#: Ways by which mini-batches come: torch's loader, indices of the tensors, or all from a list.
WAYS = ("loader", "indexed", "drawn beforehand")
#: Features, labels and groups of a mini-batch, or their memberships.
Batch = list[Tensor]
#: The package's loops, by whether there is a centre.
PACKAGE = {False: "humancompatible-train, ALM", True: "humancompatible-train, SSL-ALM"}


class Rows(NamedTuple):
    """Rows as loops take them: features, labels 0 and 1, groups, and memberships of shape (n, n_groups)."""

    X: Tensor
    y: Tensor
    groups: Tensor
    member: Tensor

    @classmethod
    def generated(cls, n_samples: int) -> Rows:
        """Rows in which the groups have unlike base rates."""
        X, y, groups = make_biased_classification(n_samples, N_FEATURES, random_state=0)
        codes = torch.tensor(groups)
        return cls(torch.tensor(X).float(), torch.tensor(y > 0).float(), codes, nn.functional.one_hot(codes).float())


def package_loader(rows: Rows, batch_size: int) -> DataLoader:
    """The package's sampler in torch's loader, which has as many rows of every group."""
    from humancompatible.train.fairness.utils import BalancedBatchSampler

    sampler = BalancedBatchSampler(group_onehot=rows.member, batch_size=batch_size)
    return DataLoader(TensorDataset(rows.X, rows.y, rows.member), batch_sampler=sampler)


def own_loader(rows: Rows, batch_size: int) -> DataLoader:
    """Our sampler in torch's loader."""
    sampler = StratifiedBatchSampler(rows.groups, rows.y, batch_size=batch_size)
    return DataLoader(TensorDataset(rows.X, rows.y, rows.groups), batch_sampler=sampler)


def plain_steps(network: nn.Module, batches: Iterator[Batch]) -> Iterator[None]:
    """Updates without any constraint."""
    optimizer = torch.optim.SGD(network.parameters(), lr=RATE)
    for X, y, _ in batches:
        network.zero_grad()
        binary_cross_entropy_with_logits(network(X).squeeze(1), y).backward()
        optimizer.step()
        yield


def package_steps(network: nn.Module, batches: Iterator[Batch], rows: Rows, smooth: bool) -> Iterator[None]:
    """Updates of the package; the weights make the objective that of all rows."""
    from humancompatible.train.dual_optim import ALM, MoreauEnvelope

    weights = rows.member.mean(dim=0) * rows.member.shape[1]
    dual = ALM(m=2, lr=0.05, penalty=1.0, is_ineq=True, dual_range=(0.0, 100.0), augmentation="hpr")
    optimizer: Any = torch.optim.SGD(network.parameters(), lr=RATE)
    if smooth:
        optimizer = MoreauEnvelope(optimizer, mu=2.0, beta=0.5)
    for X, y, member in batches:
        losses = binary_cross_entropy_with_logits(network(X).squeeze(1), y, reduction="none")
        means = losses @ member / member.sum(dim=0)
        gap = means[0] - means[1]
        values = torch.stack([gap, -gap]) - KAPPA
        dual.forward_update((losses * (member @ weights)).mean(), values).backward()
        optimizer.step()
        network.zero_grad()
        yield


def own_steps(
    network: nn.Module, batches: Iterator[Batch], rows: Rows, constraint: Constraint, smooth: bool
) -> Iterator[None]:
    """Updates as the guide has them."""
    bound = bind(constraint, rows.y, rows.groups)
    multipliers = Multipliers("ssl_alm", network.parameters()) if smooth else Multipliers()
    optimizer = torch.optim.SGD(network.parameters(), lr=RATE)
    for X, y, groups in batches:
        scores = network(X).squeeze(1)
        c = bound(scores, y, groups)
        network.zero_grad()
        multipliers.lagrangian(binary_cross_entropy_with_logits(scores, y), c).backward()
        optimizer.step()
        multipliers.step()
        yield


def batches_of(loader: DataLoader, way: str, calls: int) -> Iterator[Batch]:
    """Endless mini-batches of a loader's sampler."""
    columns = loader.dataset.tensors
    if way == "indexed":
        return (
            [column[numbers] for column in columns] for numbers in chain.from_iterable(repeat(loader.batch_sampler))
        )
    loaded = chain.from_iterable(repeat(loader))
    return loaded if way == "loader" else cycle(list(islice(loaded, calls)))


def measure(n_samples: int, batch_size: int, calls: int, repeats: int) -> list[dict[str, Any]]:
    """Times of all loops at one size of mini-batches."""
    rows = Rows.generated(n_samples)
    ours, package = own_loader(rows, batch_size), package_loader(rows, batch_size)
    functions: dict[tuple[str, str], Callable[[], Any]] = {}
    for way in WAYS:
        steps = {"no constraint": plain_steps(new_network(N_FEATURES, 0), batches_of(ours, way, calls))}
        for smooth, name in PACKAGE.items():
            drawn = batches_of(package, way, calls)
            steps[name] = package_steps(new_network(N_FEATURES, 0), drawn, rows, smooth)
        for name, (constraint, smooth) in OURS.items():
            drawn = batches_of(ours, way, calls)
            steps[f"ours, {name}"] = own_steps(new_network(N_FEATURES, 0), drawn, rows, constraint, smooth)
        functions |= {(name, way): partial(next, step) for name, step in steps.items()}
    seconds = dict(zip(functions, side_by_side(list(functions.values()), calls, repeats), strict=True))
    return [
        {
            "batch": batch_size,
            "rows": way,
            "loop": name,
            "microseconds": 1e6 * value,
            "times_plain": value / seconds["no constraint", way],
            "times_package": seconds[PACKAGE["SSL-ALM" in name], way] / value,
        }
        for (name, way), value in seconds.items()
    ]


def main(arguments: list[str] | None = None) -> pd.DataFrame:
    """Run from the command line, or with these arguments."""
    parser = command_line(__doc__, "few rows and steps, one size of mini-batches")
    options = parsed(parser, arguments)
    set_threads(1)
    batches, size = ((128,), (1000, 4, 1)) if options.quick else (BATCHES, (20_000, 200, 9))
    found = [measure(size[0], batch, *size[1:]) for batch in batches]
    table = pd.DataFrame([row for rows in found for row in rows])
    shown = significant(table, 3)
    keep(shown, "training_loop", options)
    return table


if __name__ == "__main__":
    main()
