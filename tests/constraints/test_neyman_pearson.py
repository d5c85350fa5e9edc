"""Bounds on the losses and errors of classes: the paper's formula, recall, slopes, refinement, mini-batches."""

import numpy as np
import pytest
import torch
from scipy import special
from sklearn.metrics import recall_score

from fairconstrained.constraints.neyman_pearson import ClassError, ClassLoss, class_factors
from fairconstrained.data import FairData
from fairconstrained.models.margins import MarginData
from fairconstrained.objectives import Hinge, Logistic, TruncatedLogistic
from fairconstrained.objectives.group_loss import GroupLoss
from fairconstrained.sampling import sampler_of

LOSSES = {
    "logistic": (Logistic(), lambda m: np.log1p(np.exp(-m))),
    "truncated": (TruncatedLogistic(2.0), lambda m: 2 * np.log1p(np.log1p(np.exp(-m)) / 2)),
    "hinge": (Hinge(1e-9), lambda m: np.maximum(1 - m, 0)),
}
LABELS = ("a", "b", "c")


def draw(n=60, seed=0, whole=False):
    """Outputs, classes and weights of samples; the margins as data, and their scores. ``whole``: many outputs tie."""
    rng = np.random.default_rng(seed)
    own = np.sort(np.append(np.arange(3), rng.integers(0, 3, n - 3)))
    outputs = rng.normal(size=(n, 3)) + np.eye(3)[own]
    outputs = np.round(outputs) if whole else outputs
    items = FairData.from_arrays(outputs, own.astype(float), np.zeros(n, dtype=int), (None,), rng.uniform(0.5, 2, n))
    data = MarginData.of(items, LABELS)
    rows, rivals = data.X.T
    return outputs, own, items.weights.numpy(), data, outputs[rows, own[rows]] - outputs[rows, rivals]


def loss_by_hand(phi, outputs, own, weights, k):
    rows = own == k
    terms = sum(phi(outputs[rows, k] - outputs[rows, rival]) for rival in range(3) if rival != k)
    return np.average(terms, weights=weights[rows])


@pytest.mark.parametrize("name", LOSSES)
def test_the_losses_of_the_paper(name):
    loss, phi = LOSSES[name]
    outputs, own, weights, data, scores = draw()
    by_hand = [loss_by_hand(phi, outputs, own, weights, k) for k in range(3)]
    for k, label in enumerate(LABELS):
        bound = ClassLoss(label, 0.3, loss).unchecked(data)
        assert bound.name == f"loss[{label}]"
        assert bound.metric(scores) == pytest.approx(by_hand[k])
        assert bound.values(torch.from_numpy(scores), torch.empty(0)).numpy() == pytest.approx([by_hand[k] - 0.3])
    objective = GroupLoss(loss, tuple(class_factors(data) * [1, 0, 1])).bind(data)
    assert objective.values(torch.from_numpy(scores), torch.empty(0)).item() == pytest.approx(by_hand[0] + by_hand[2])


@pytest.mark.parametrize("whole", [False, True])
def test_the_error_is_one_minus_recall(whole):
    outputs, own, weights, data, scores = draw(whole=whole)
    recalls = recall_score(own, outputs.argmax(axis=1), average=None, sample_weight=weights)
    for k, label in enumerate(LABELS):
        bound = ClassError(label, 0.1, Logistic()).unchecked(data)
        assert bound.metric(scores) == pytest.approx(1 - recalls[k])
        assert bound.exact(scores) == pytest.approx(0.9 - recalls[k])
        assert bound.granularity == pytest.approx(weights[own == k].max() / weights[own == k].sum())
    assert whole == bool((scores == 0).any())


@pytest.mark.parametrize("notion", [ClassLoss, ClassError])
def test_gradients(notion):
    *_, data, scores = draw()
    bound = notion("b", 0.2, TruncatedLogistic(2.0)).unchecked(data).refined(scores, blur=0.1, margin=0.0)
    at, direction = torch.from_numpy(scores).requires_grad_(), np.random.default_rng(0).normal(size=scores.size)
    (slope,) = torch.autograd.grad(bound.values(at, torch.empty(0)).sum(), at)
    step = 1e-6 * direction
    ends = [bound.values(torch.from_numpy(scores + s), torch.empty(0)).item() for s in (step, -step)]
    assert ends[0] - ends[1] == pytest.approx(2 * slope.numpy() @ step, rel=1e-5)
    assert not slope.numpy()[data.codes != 1].any()


def test_the_error_has_exact_values_and_the_slopes_of_the_loss():
    *_, data, scores = draw()
    loss, error = ClassLoss("b", 0.2, Logistic()).unchecked(data), ClassError("b", 0.2, Logistic()).unchecked(data)
    at = torch.from_numpy(scores).requires_grad_()
    values, losses = (term.values(at, torch.empty(0)) for term in (error, loss))
    assert values.item() == pytest.approx(error.exact(scores))
    slopes, of_losses = (torch.autograd.grad(v.sum(), at)[0] for v in (values, losses))
    # an upper bound of the error: one where a margin is zero
    np.testing.assert_allclose(slopes, of_losses / np.log(2))
    refined = error.refined(scores, blur=0.1, margin=0.05)
    moved = refined.refined(scores + 0.3, blur=0.02, margin=0.0)
    at = torch.from_numpy(scores)
    assert refined.values(at, torch.empty(0)).item() == pytest.approx(error.exact(scores) + 0.05)
    assert moved.values(at + 0.3, torch.empty(0)).item() == pytest.approx(error.exact(scores + 0.3))
    assert moved.slope == refined.slope >= error.slope == pytest.approx(1 / np.log(2))
    assert moved.metric(scores) == error.metric(scores)
    assert moved.granularity == error.granularity


@pytest.mark.parametrize("blur", [0.1, 0.5])
def test_the_slope_is_that_of_the_blurred_error_over_that_of_the_loss(blur):
    *_, data, scores = draw()
    scores = scores / 20  # so near to ties that the error falls faster than its upper bound does
    error, loss = ClassError("b", 0.2, Logistic()).unchecked(data), ClassLoss("b", 0.2, Logistic()).unchecked(data)
    of_class = data.codes == 1
    least = scores[of_class].reshape(-1, 2).min(axis=1)
    shares = data.weights.numpy()[of_class][::2]
    shares = shares / shares.sum()
    width = blur * np.sqrt(np.cov(least, aweights=shares, ddof=0)) * np.sqrt(3) / np.pi

    def fall(function, step=1e-6):
        return (function(-step) - function(step)) / (2 * step)

    of_error = fall(lambda step: shares @ (1 - special.expit((least + step) / width)))
    expected = of_error / fall(lambda step: loss.metric(scores + step))
    assert error.refined(scores, blur=blur, margin=0.0).slope == pytest.approx(expected, rel=1e-5)
    assert expected > error.slope


def test_scores_that_are_all_the_same():
    *_, data, scores = draw()
    for label, expected in zip(LABELS, (0.0, 1.0, 1.0), strict=True):  # argmax takes the first class
        refined = ClassError(label, 0.1, Hinge()).unchecked(data).refined(0 * scores, blur=0.1, margin=0.0)
        assert refined.metric(0 * scores) == pytest.approx(expected)
        assert np.isfinite(refined.slope)


@pytest.mark.parametrize("notion", ["loss", "error", "refined error"])
def test_mini_batches_are_unbiased(notion):
    *_, data, scores = draw(30)
    bound = (ClassLoss if notion == "loss" else ClassError)("c", 0.2, Logistic()).unchecked(data)
    if notion == "refined error":
        bound = bound.refined(scores, blur=0.1, margin=0.0)
    rng = np.random.default_rng(0)
    place = np.argsort(data.order)
    values = []
    for batch in sampler_of(data, 10).batches(rng, 1200):  # five samples of thirty: whole rounds
        own = scores[place[batch.order]]
        values.append(bound.on(batch).values(torch.from_numpy(own), torch.empty(0)).item())
    whole = bound.values(torch.from_numpy(scores), torch.empty(0)).item()
    assert np.std(values) > 0.01
    assert np.mean(values) == pytest.approx(whole, abs=1e-10)


def test_sizes_of_the_classes_are_numbers_of_samples():
    _, own, weights, data, _ = draw()
    for k, label in enumerate(LABELS):
        for notion in (ClassLoss, ClassError):
            cells = notion(label, 0.3, Logistic()).unchecked(data).compared_cells()
            assert cells.counts.tolist() == [(own == k).sum()]
            assert cells.shares[0] == pytest.approx(weights[own == k].max() / weights[own == k].sum())


def test_errors_at_cuts_are_those_of_moved_outputs():
    """Two classes: with the cut the outputs of the first one are larger by it."""
    rng = np.random.default_rng(0)
    own, outputs = np.repeat([0.0, 1.0], [20, 30]), np.round(rng.normal(size=(50, 2)), 1)
    outputs[20:, 1] += 1.0
    items = FairData.from_arrays(outputs, own, np.zeros(50, dtype=int), (None,), rng.uniform(0.5, 2, 50))
    data = MarginData.of(items, ("a", "b"))
    rows, rivals = data.X.T
    classes = own[rows].astype(int)
    scores = outputs[rows, classes] - outputs[rows, rivals]
    cuts = np.array([-9.0, -0.35, 0.05, 0.75, 9.0])
    for k, label in enumerate("ab"):
        bound, mass = ClassError(label, 0.1, Logistic()).unchecked(data), items.weights.numpy() * (own == k)
        moved = (outputs[:, 1] - outputs[:, 0])[:, None] > cuts
        expected = mass @ (moved != k) / mass.sum()
        np.testing.assert_allclose(bound.values_at_cuts((2 * classes - 1) * scores, cuts), expected)


def test_complaints_name_the_class():
    *_, data, _ = draw()
    for notion, what in ((ClassLoss, "loss"), (ClassError, "error rate")):
        bound = notion("b", 0.2, Logistic()).unchecked(data)
        assert f"the {what} of class 'b' is 0.5 on" in bound.complaint(0.5)


@pytest.mark.parametrize("bound", [-0.1, 1.5, "much"])
def test_bad_bounds(bound):
    *_, data, _ = draw()
    with pytest.raises(ValueError, match=r"must be"):
        ClassError("b", bound, Logistic()).unchecked(data)
