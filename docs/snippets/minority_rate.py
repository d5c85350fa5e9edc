"""MinorityRateClassifier: a share on the training rows, and on rows without labels; a picture of both."""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from fairconstrained import FairnessWarning, MinorityRateClassifier, ParityPairClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import minority_share

# fit warns where the share in the predictions is below min_share; here both shares are shown
warnings.simplefilter("ignore", FairnessWarning)

# the share
X, y, group = make_biased_classification(1500, random_state=0)
free = MinorityRateClassifier(None, minority=1, rate="indicator").fit(X, y, sensitive_features=group)
model = MinorityRateClassifier(0.3, minority=1, rate="indicator").fit(X, y, sensitive_features=group)
for fitted in (free, model):
    print(fitted.status_, f"share {fitted.minority_share_:.3f}, accuracy {fitted.score(X, y):.3f}")
share = minority_share(None, model.decision_function(X), sensitive_features=group, minority=1)
# end of the share
assert free.minority_share_ < 0.25
assert np.isclose(share, model.minority_share_)
assert share >= 0.3 - 1 / 1500

# other rows
applicants, _, applicant_group = make_biased_classification(1000, group_proportions=(0.8, 0.2), random_state=1)
for_them = MinorityRateClassifier(0.3, minority=1, rate="indicator")
for_them.fit(X, y, X_constraint=applicants, sensitive_features_constraint=applicant_group)
for name, fitted in (("training rows", model), ("applicants", for_them)):
    scores = fitted.decision_function(applicants)
    print(name, minority_share(None, scores, sensitive_features=applicant_group, minority=1))
# end of other rows
assert for_them.minority_share_ >= 0.3 - 1 / 1000
assert minority_share(None, model.decision_function(applicants), sensitive_features=applicant_group, minority=1) < 0.3

# stationarity
smooth = MinorityRateClassifier(0.3, minority=1, compute_stationarity=True).fit(X, y, sensitive_features=group)
print(f"distance to the solution of the proximal subproblem: {smooth.stationarity_:.1e}")
# end of stationarity
assert smooth.stationarity_ < 0.05

# parity pair
pair = ParityPairClassifier(1.02, radius=3.0).fit(X, y, sensitive_features=group)
print(f"largest parity pair: {pair.constraint_values_['parity_pair']:.3f}")
# end of parity pair
assert pair.constraint_values_["parity_pair"] <= 1.02 + 1e-6

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
shares = np.linspace(0.2, 0.5, 5)
for rate, marker in (("sigmoid", "s"), ("indicator", "o")):
    fits = [MinorityRateClassifier(c, minority=1, rate=rate).fit(X, y, sensitive_features=group) for c in shares]
    axes[0].plot(shares, [m.exact_share_ for m in fits], marker + "-", label=f'rate="{rate}"')
    axes[1].plot(shares, [m.score(X, y) for m in fits], marker + "-", label=f'rate="{rate}"')
axes[0].axline((0.2, 0.2), slope=1, color="grey", linestyle=":", label="min_share")
axes[0].set(xlabel="min_share", ylabel="share of the predictions")
axes[1].set(xlabel="min_share", ylabel="accuracy, training rows")
for ax in axes:
    ax.legend()
figure.savefig("minority_rate.png", dpi=120)
