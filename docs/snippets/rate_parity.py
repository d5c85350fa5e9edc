"""RateParityClassifier: smooth and exact rates, many overlapping groups, and a picture of both."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fairconstrained import FairnessWarning, RateParityClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.groups import threshold_groups
from fairconstrained.metrics import rate_gap

# fit warns where the gap of the predictions exceeds kappa; here both gaps are shown
warnings.simplefilter("ignore", FairnessWarning)

# the rates
X, y, group = make_biased_classification(2000, random_state=0)
smooth = RateParityClassifier(kappa=0.05, rate="sigmoid").fit(X, y, sensitive_features=group)
exact = RateParityClassifier(kappa=0.05).fit(X, y, sensitive_features=group)
for model in (smooth, exact):
    print(model.status_, model.constraint_values_, "gap of the predictions", model.exact_gaps_)
gap = rate_gap(y, exact.decision_function(X), sensitive_features=group)
# end of the rates
assert smooth.constraint_values_["demographic_parity"] <= 0.05 + 1e-6
assert np.isclose(gap, exact.constraint_values_["demographic_parity"])
assert gap <= 0.05 + 0.002

# many groups
rng = np.random.default_rng(0)
people = pd.DataFrame({"age": rng.integers(18, 80, 3000), "income": rng.lognormal(size=3000), "debt": rng.random(3000)})
repaid = (people.income - people.debt + 0.02 * people.age + rng.normal(size=3000) > 1.5).astype(int)
members = threshold_groups(people, ["age", "income"], quantiles=8, min_share=0.02)
features = (people - people.mean()) / people.std()
models = {
    kappa: RateParityClassifier(kappa, constraint="intersectional", rate="indicator").fit(
        features, repaid, sensitive_features=members
    )
    for kappa in (None, 0.2)
}
for model in models.values():
    print(len(model.groups_), model.status_, model.constraint_values_, f"accuracy {model.score(features, repaid):.3f}")
# end of many groups
assert len(models[0.2].groups_) == members.shape[1] > 50
assert models[0.2].constraint_values_["intersectional"] <= 0.2 + 0.02
assert models[None].constraint_values_["intersectional"] > 0.3

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
kappas = [0.01, 0.02, 0.05, 0.1, 0.2]
for rate, label in (("sigmoid", 'rate="sigmoid"'), ("indicator", 'rate="indicator"')):
    fitted = [RateParityClassifier(kappa, rate=rate).fit(X, y, sensitive_features=group) for kappa in kappas]
    axes[0].plot(kappas, [m.exact_gaps_["demographic_parity"] for m in fitted], "o-", label=label)
axes[0].axline((0, 0), slope=1, color="grey", linestyle=":", label="kappa")
axes[0].set(xlabel="kappa", ylabel="gap of the predictions", title="two groups")
axes[0].legend()
for kappa, model in models.items():
    rates = np.sort(model.group_rates_["rate"].to_numpy())
    axes[1].plot(np.linspace(0, 1, rates.size), rates, label="no bound" if kappa is None else f"kappa={kappa}")
axes[1].axhline((models[0.2].predict(features)).mean(), color="grey", linestyle=":", label="all rows")
axes[1].set(xlabel="share of the groups", ylabel="positive rate", title=f"{members.shape[1]} overlapping groups")
axes[1].legend()
figure.savefig("rate_parity.png", dpi=120)
