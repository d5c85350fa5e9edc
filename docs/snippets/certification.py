"""Certificates: a bound for the population, what it would have taken, and a classifier that is tested once."""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from fairconstrained import CertifiedFairClassifier, FairnessWarning, RateParityClassifier, certify
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import independence_gap

# a certificate
X, y, group = make_biased_classification(8000, random_state=0)
fit, new = slice(0, 4000), slice(4000, None)
model = RateParityClassifier(kappa=0.05, rate="indicator").fit(X[fit], y[fit], sensitive_features=group[fit])

certificate = certify(
    model, X[new], y[new], sensitive_features=group[new], metric="independence_gap", kappa=0.11, delta=0.05
)
print(certificate)
print(certificate.cells)
# end of a certificate
assert certificate.gap == independence_gap(None, model.predict(X[new]), sensitive_features=group[new])
assert certificate.passed is (certificate.upper_bound <= 0.11)
assert certificate.method == "unconditional"

# sample sizes
for kappa in (0.15, 0.13, 0.11):
    print(kappa, certificate.sample_size(kappa))
# end of sample sizes
assert certificate.sample_size(certificate.gap) is None
assert certificate.sample_size(certificate.gap + 0.01) > certificate.sample_size(certificate.gap + 0.02)

# the rows of the fit
try:
    certify(model, X[fit], y[fit], sensitive_features=group[fit], metric="independence_gap")
except ValueError as error:
    print(error)
# end of the rows of the fit
else:
    raise AssertionError("the rows of the fit are refused")

# forgotten rows
print(certificate.noticeable_overlap)  # the fewest rows of the fit among these that would be noticed
model.forget_rows()
unchecked = certify(model, X[new], y[new], sensitive_features=group[new], metric="independence_gap", kappa=0.13)
print(unchecked.share_seen)  # None: nothing was checked
# end of forgotten rows
assert certificate.noticeable_overlap == 41  # more than 1 %
assert unchecked.share_seen is None
assert "has no record that tells" in str(unchecked)

# a certified classifier
certified = CertifiedFairClassifier(
    RateParityClassifier(rate="indicator"),
    kappa=0.15,
    metric="independence_gap",
    kappas=[0.08, 0.05],
    cv=2,
    random_state=0,
)
certified.fit(X, y, sensitive_features=group)
print(certified.status_, certified.kappa_, f"{certified.certificate_.upper_bound:.3f}")
print(certified.plan_.round(3))
# end of a certified classifier
assert certified.status_ == "certified"
assert certified.kappa_ < 0.15
X_all, _, group_all = make_biased_classification(100_000, random_state=1)
assert independence_gap(None, certified.predict(X_all), sensitive_features=group_all) < 0.15

# not certified
few = slice(0, 1000)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    uncertified = CertifiedFairClassifier(
        RateParityClassifier(), kappa=0.1, metric="independence_gap", kappas=[0.01], random_state=0
    ).fit(X[few], y[few], sensitive_features=group[few])
print(uncertified.status_)
print(caught[-1].message)
# end of not certified
assert uncertified.status_ == "uncertified"
assert caught[-1].category is FairnessWarning

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
sizes = [250, 500, 1000, 2000, 4000, 8000]
new_X, new_y, new_group = make_biased_classification(100_000, random_state=2)
for ax, metric, methods in (
    (axes[0], "independence_gap", {"unconditional": "exact, of the difference", "binomial": "exact, of both rates"}),
    (axes[1], "statistical_parity_gap", {"binomial": "exact, at every threshold", "dkw": "DKW band"}),
):
    true_gap = certify(model, new_X, new_y, sensitive_features=new_group, metric=metric).gap
    for color, (method, name) in zip(("#0072B2", "#D55E00"), methods.items(), strict=False):
        found = [
            certify(model, new_X[:n], new_y[:n], sensitive_features=new_group[:n], metric=metric, method=method)
            for n in sizes
        ]
        ax.plot(sizes, [each.upper_bound for each in found], color=color, marker="o", ms=4, label=f"bound, {name}")
    ax.plot(sizes, [each.gap for each in found], color="0.5", marker="o", ms=3, lw=1, label="gap of the sample")
    ax.axhline(true_gap, color="black", lw=1, label="gap in the population (100,000 rows)")
    ax.set(xscale="log", xlabel="rows", title=metric, ylim=(0, 0.5))
    ax.minorticks_off()
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8.5)
assert all(bound.upper_bound > true_gap for bound in found)
assert np.all(np.diff([each.upper_bound for each in found])[2:] < 0)
figure.savefig("certification.png", dpi=120)
