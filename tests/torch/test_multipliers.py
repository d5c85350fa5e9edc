"""Multipliers on problems whose primal and dual optimum are known, in every mode."""

from __future__ import annotations

import io

import pytest
import torch

from fairconstrained.constraints import RateGap, StatisticalParity
from fairconstrained.torch import MODES, Multipliers, bind

#: The point of least distance to (2, 1) within x <= 1 and y <= 3 and x + y <= 1.5, and the multipliers there.
TARGET = torch.tensor([2.0, 1.0], dtype=torch.float64)
OPTIMUM, DUALS = [1.0, 0.5], [1.0, 0.0, 1.0]
OPTIONS = {
    "augmented_lagrangian": {"dual_rate": 0.2},
    "ssl_alm": {"dual_rate": 0.2},
    "switching": {"tolerance": 0.02, "decay": 0.999},
    "nupi": {"integral_gain": 0.05},
}


def loss_of(x):
    return ((x - TARGET) ** 2).sum()


def values_of(x):
    return torch.stack([x[0] - 1, x[1] - 3]), x.sum() - 1.5


class Loop:
    """Gradient descent on the small problem."""

    def __init__(self, mode, rate=0.05, **options):
        self.x = torch.zeros(2, dtype=torch.float64, requires_grad=True)
        self.multipliers = Multipliers(mode, [self.x] if mode == "ssl_alm" else None, **options)
        self.optimizer = torch.optim.SGD([self.x], lr=rate)

    def run(self, n_steps):
        for _ in range(n_steps):
            self.optimizer.zero_grad()
            self.multipliers.lagrangian(loss_of(self.x), *values_of(self.x)).backward()
            self.optimizer.step()
            self.multipliers.step()
        return self.x.detach()


@pytest.mark.parametrize("mode", sorted(set(MODES) - {"switching"}))
def test_primal_and_dual_optimum(mode):
    loop = Loop(mode, **OPTIONS[mode])
    torch.testing.assert_close(loop.run(2000), torch.tensor(OPTIMUM).double(), atol=1e-6, rtol=0)
    torch.testing.assert_close(loop.multipliers.values, torch.tensor(DUALS).double(), atol=1e-6, rtol=0)
    assert loop.multipliers.by_name() == pytest.approx({"0[0]": 1.0, "0[1]": 0.0, "1[0]": 1.0}, abs=1e-6)


@pytest.mark.slow
def test_switching_finds_the_primal_optimum_and_has_no_multipliers():
    loop = Loop("switching", **OPTIONS["switching"])
    schedule = torch.optim.lr_scheduler.ExponentialLR(loop.optimizer, 0.999)
    for _ in range(4000):
        loop.run(1)
        schedule.step()
    torch.testing.assert_close(loop.x.detach(), torch.tensor(OPTIMUM).double(), atol=0.01, rtol=0)
    assert loop.multipliers.values is None
    assert loop.multipliers.by_name() is None


def test_lagrangians_are_those_of_the_formulas():
    x = torch.tensor([1.4, 0.6], dtype=torch.float64)
    values = torch.cat([part.reshape(-1) for part in values_of(x)])
    known = torch.tensor([0.3, 0.2, 0.0], dtype=torch.float64)
    expected = {
        "augmented_lagrangian": loss_of(x)
        + ((known + 2 * values).clamp(min=0).square().sum() - known.square().sum()) / 4,
        "nupi": loss_of(x) + known @ values,
    }
    for mode, value in expected.items():
        multipliers = Multipliers(mode, **({"penalty": 2.0} if mode == "augmented_lagrangian" else {}))
        multipliers.lagrangian(loss_of(x), *values_of(x))
        multipliers._state["multipliers"] = known.numpy()
        torch.testing.assert_close(multipliers.lagrangian(loss_of(x), *values_of(x)), value)
        x.requires_grad_()
        assert torch.autograd.gradcheck(
            lambda x, m=multipliers: m.lagrangian(loss_of(x), *values_of(x)), (x,), atol=1e-5
        )
        x = x.detach()
    plain = Multipliers(penalty=0.0)
    plain.lagrangian(loss_of(x), *values_of(x))
    plain._state["multipliers"] = known.numpy()
    torch.testing.assert_close(plain.lagrangian(loss_of(x), *values_of(x)), expected["nupi"])


def test_constraints_of_the_package_and_plain_values_make_one_lagrangian(natural):
    rows = (natural.y, natural.groups)
    constraint, none = (bind(RateGap(kappa), *rows) for kappa in (0.05, None))
    results = []
    for plain in (False, True):
        scores = natural.scores.clone().requires_grad_()
        multipliers, parts = Multipliers(dual_rate=1.0), [none(scores, *rows), constraint(scores, *rows)]
        parts = [c.values for c in parts] if plain else parts
        multipliers.lagrangian(scores.mean(), *parts, scores[:1])
        multipliers.step()
        value = multipliers.lagrangian(3 * scores.mean(), *parts, scores[:1])
        assert multipliers.values.max() > 0.01
        results.append((value.detach(), torch.autograd.grad(2 * value, scores)[0]))
    torch.testing.assert_close(*results)


def test_the_centre_adds_half_the_squared_distance():
    x = torch.tensor([1.4, 0.6], dtype=torch.float64, requires_grad=True)
    smoothed, plain = Multipliers("ssl_alm", [x], smoothing=3.0, averaging=0.25), Multipliers()
    with torch.no_grad():
        x += 1.0
    both = [m.lagrangian(loss_of(x), *values_of(x)) for m in (smoothed, plain)]
    torch.testing.assert_close(both[0] - both[1], torch.tensor(3.0).double())  # 3/2 (1 + 1)
    slopes = [torch.autograd.grad(value, x, retain_graph=True)[0] for value in both]
    torch.testing.assert_close(slopes[0] - slopes[1], torch.full((2,), 3.0).double())
    with torch.no_grad():
        x += 5.0  # the optimiser's step does not move the centre
    smoothed.step()
    torch.testing.assert_close(smoothed.state_dict()["centre"], torch.tensor([1.65, 0.85]).double())


def test_moves_of_the_multipliers():
    loss, c = torch.tensor(0.0), torch.tensor([0.5, -0.5, 4.0])
    ascent = Multipliers(dual_rate=0.1, max_multiplier=0.3)
    controller = Multipliers("nupi", integral_gain=0.1, proportional_gain=2.0, memory=0.5, max_multiplier=5.0)
    for multipliers, first, second in [
        (ascent, [0.05, 0.0, 0.3], [0.10, 0.0, 0.3]),
        # 0.1 c + 2 * 0.5 c; then 0.1 c + 2 * 0.5 (c - c / 2) besides, within [0, 5]
        (controller, [0.55, 0.0, 4.4], [0.85, 0.0, 5.0]),
    ]:
        for expected in (first, second):
            multipliers.lagrangian(loss, c)
            multipliers.step()
            torch.testing.assert_close(multipliers.values, torch.tensor(expected).double())
    ascent.lagrangian(loss, c)
    ascent.step(torch.tensor([-1.0, -1.0, -4.0]))  # values of other rows
    assert ascent.values.tolist() == [0.0, 0.0, 0.0]
    ascent.lagrangian(loss, c)
    with pytest.raises(ValueError, match="step takes the 3 components of lagrangian, got 2"):
        ascent.step(c[:2])


def test_switching_follows_the_worst_component_where_it_is_violated():
    multipliers = Multipliers("switching", tolerance=0.1, decay=0.5, weight=3.0)
    loss, c = torch.tensor(7.0), torch.tensor([0.09, -1.0])
    assert multipliers.lagrangian(loss, c) == 7
    multipliers.step()
    assert multipliers.lagrangian(loss, c) == pytest.approx(0.27)  # the tolerance is 0.05 now
    multipliers.step()
    assert multipliers.lagrangian(loss, -c.abs()) == 7
    assert Multipliers("switching").lagrangian(loss, c[:0]) == 7


@pytest.mark.parametrize("mode", sorted(MODES))
def test_a_saved_state_goes_on_as_if_nothing_had_happened(mode):
    whole, first, second = (Loop(mode, **OPTIONS[mode]) for _ in range(3))
    whole.run(60)
    first.run(25)
    file = io.BytesIO()
    torch.save(first.multipliers.state_dict(), file)
    first.run(3)  # what was saved does not change with it
    file.seek(0)
    second.run(7)
    second.multipliers.load_state_dict(torch.load(file))
    rerun = Loop(mode, **OPTIONS[mode])
    rerun.run(25)
    with torch.no_grad():
        second.x.copy_(rerun.x)
    second.run(35)
    assert torch.equal(second.x, whole.x)
    assert second.multipliers.by_name() == whole.multipliers.by_name()
    assert loss_of(whole.x) != loss_of(rerun.x)


def test_further_components_begin_at_zero(natural):
    constraint = bind(StatisticalParity(0.01, n_levels=2), natural.y, natural.groups)
    rates = bind(RateGap(0.05), natural.y, natural.groups)
    multipliers = Multipliers(dual_rate=1.0)

    def step():
        parts = [c(natural.scores, natural.y, natural.groups) for c in (constraint, rates)]
        multipliers.lagrangian(torch.zeros(()), *parts)
        return parts

    step()
    multipliers.step()
    known = multipliers.by_name()
    assert max(known.values()) > 0
    constraint.refine(natural.scores)
    parts = step()
    assert list(multipliers.by_name()) == [*parts[0].names, *parts[1].names]
    assert {name: multipliers.by_name()[name] for name in known} == known
    assert sum(multipliers.by_name().values()) == sum(known.values())


def test_errors():
    for arguments, message in [
        (("sgd",), "mode must be one of"),
        (("nupi", None), None),
    ]:
        if message:
            with pytest.raises(ValueError, match=message):
                Multipliers(*arguments)
    for mode, options, message in [
        ("nupi", {"penalty": 1.0}, r"mode 'nupi' has no options \['penalty'\]; it has \['integral_gain'"),
        ("nupi", {"memory": 2.0}, "memory must be at most 1"),
        ("augmented_lagrangian", {"penalty": -1.0}, "penalty must be a finite number of at least 0"),
        ("augmented_lagrangian", {"max_multiplier": 0.0}, "max_multiplier must be a finite number above 0"),
        ("switching", {"decay": 1.5}, "decay must be at most 1"),
        ("switching", {"tolerance": -1.0}, "tolerance must be"),
        ("ssl_alm", {}, "needs the parameters of the network"),
    ]:
        with pytest.raises(ValueError, match=message):
            Multipliers(mode, **options)
    with pytest.raises(ValueError, match="which no other mode takes"):
        Multipliers("nupi", [torch.zeros(2, requires_grad=True)])
    multipliers = Multipliers()
    with pytest.raises(RuntimeError, match="step follows lagrangian"):
        multipliers.step()
    with pytest.raises(ValueError, match="at least one constraint"):
        multipliers.lagrangian(torch.zeros(()))
    multipliers.lagrangian(torch.zeros(()), torch.zeros(2))
    for others in ([torch.zeros(1)], [torch.zeros(2), torch.zeros(1)]):
        with pytest.raises(ValueError, match="the same constraints in every call"):
            multipliers.lagrangian(torch.zeros(()), *others)
    with pytest.raises(ValueError, match="the state is one of mode 'augmented_lagrangian'"):
        Multipliers("nupi").load_state_dict(multipliers.state_dict())


@pytest.mark.parametrize("mode", sorted(MODES))
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_values_that_are_not_finite_leave_the_multipliers_as_they_were(mode, bad):
    loop = Loop(mode, **OPTIONS[mode])
    loop.run(3)
    before = loop.multipliers.by_name()
    wrong = torch.tensor([bad, 0.0]), torch.tensor(0.0)
    with pytest.raises(ValueError, match="not finite"):
        loop.multipliers.lagrangian(loss_of(loop.x), *wrong)
    loop.multipliers.lagrangian(loss_of(loop.x), *values_of(loop.x))
    with pytest.raises(ValueError, match="not finite"):
        loop.multipliers.step(*wrong)
    assert loop.multipliers.by_name() == before
    loop.run(1)
