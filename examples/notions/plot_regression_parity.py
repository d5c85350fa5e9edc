r"""
Regression: fitted models on the theoretical frontier
=====================================================

Least squares under a bound on the gap of the predictions, on generated data for which the best possible trade-off is
known.

The data are drawn as :math:`y = \mu_g + z + \tfrac12 \varepsilon` with standard normal :math:`z` and
:math:`\varepsilon`. The features show :math:`z` exactly, and a proxy :math:`x \mid g \sim \mathcal{N}(2 g, 1)` of the
group. Least squares uses the proxy, because the means :math:`\mu_g` differ.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from fairconstrained import PartialParityRegressor
from fairconstrained.datasets import make_biased_regression
from fairconstrained.metrics import statistical_parity_gap
from fairconstrained.plotting import ScoreDensityDisplay

shares, means, proxy, noise = np.array([0.7, 0.3]), np.array([0.0, -2.0]), 2.0, 0.5
draw = {"group_proportions": shares, "group_means": means, "proxy_strength": proxy, "noise": noise}
X, y, group = make_biased_regression(6000, **draw, random_state=0)
X_new, y_new, group_new = make_biased_regression(100_000, **draw, random_state=1)

# %%
# The best possible trade-off
# ---------------------------
#
# A linear prediction :math:`b + w z + v x` has the distribution :math:`\mathcal{N}(b + 2 v g, w^2 + v^2)` in group
# :math:`g`, so its statistical parity gap is :math:`2 \Phi(|v| / \sqrt{w^2 + v^2}) - 1`. With
# :math:`v = -t w` the gap fixes :math:`t`; the best :math:`w` and :math:`b` for it follow from least squares in the
# population. That gives the largest :math:`R^2` for every gap.

variance = shares[0] * shares[1]  # of the group, which is 0 or 1
difference = means[1] - means[0]
total = difference**2 * variance + 1 + noise**2


def best_r2(gap):
    """Largest R² of a linear prediction whose gap is at most ``gap``."""

    def error(t):
        # prediction w (z - t x): covariance with y and variance over the population
        covariance = 1 - t * proxy * difference * variance
        power = 1 + t**2 * (1 + proxy**2 * variance)
        return total - covariance**2 / power

    ratio = norm.ppf((1 + gap) / 2) * 2 / proxy  # |v| / sqrt(w² + v²)
    largest = ratio / np.sqrt(1 - ratio**2)
    return 1 - minimize_scalar(error, bounds=(0, largest), method="bounded").fun / total


# %%
# The fitted models
# -----------------
#
# ``kappa`` bounds the gap on the 6,000 training rows. Gap and :math:`R^2` are measured on 100,000 new ones, so
# ``new_row_folds=None`` leaves out the estimates of the gaps there.

kappas = [0.01, 0.03, 0.06, 0.1, 0.15, 0.25, None]
models = {kappa: PartialParityRegressor(kappa, new_row_folds=None) for kappa in kappas}
print(" kappa  status   training gap  new gap  new R²  possible R²  on noise")
points = []
for kappa, model in models.items():
    predicted = model.fit(X, y, sensitive_features=group).predict(X_new)
    gap = statistical_parity_gap(None, predicted, sensitive_features=group_new)
    r2 = model.score(X_new, y_new)
    points.append((gap, r2))
    on_training = model.constraint_values_["statistical_parity"]
    # the columns after the two that make up z and the proxy
    on_noise = np.linalg.norm(model.coef_[3:])
    print(
        f"{kappa!s:>6}  {model.status_}  {on_training:12.4f}  {gap:7.4f}  {r2:.4f}  {best_r2(gap):11.4f}"
        f"  {on_noise:8.3f}"
    )

# %%
# The figure
# ----------
#
# The fitted models lie on the frontier, with one instructive exception. Two samples of 4,200 and 1,800 rows from the
# same distribution have a gap of 0.025 on average, so ``kappa=0.01`` requires a smaller gap than sampling error allows.
# The model keeps this bound by giving weight to columns of pure noise (last column of the table). Right: the bound
# makes the two distributions of predictions nearly equal, although those of the target differ.

figure, axes = plt.subplot_mosaic(
    [["front", "loose"], ["front", "tight"]], figsize=(10.5, 5.6), layout="constrained", width_ratios=(1.15, 1)
)
gaps = np.linspace(0.001, 0.34, 200)
axes["front"].plot(gaps, [best_r2(gap) for gap in gaps], color="0.5", label="possible in the population")
axes["front"].plot(*np.transpose(points), "o", color="C0", label="fitted, on new data")
for kappa, (gap, r2) in zip(kappas, points, strict=True):
    axes["front"].annotate(
        f"{kappa}", (gap, r2), textcoords="offset points", xytext=(8, -9), color="0.3", fontsize="small"
    )
axes["front"].set(
    xlabel="statistical parity gap of the predictions", ylabel="$R^2$", title="points are labelled with kappa"
)
axes["front"].legend(loc="lower right", frameon=False)
axes["front"].spines[["top", "right"]].set_visible(False)
for place, kappa in {"loose": None, "tight": 0.03}.items():
    ScoreDensityDisplay.from_estimator(models[kappa], X_new, sensitive_features=group_new, ax=axes[place])
    axes[place].set_title(f"predictions, kappa = {kappa}")
plt.show()
