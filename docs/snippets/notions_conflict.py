"""Three notions that cannot hold at once: a table of counts, and the same in a formula."""

import numpy as np

from fairconstrained.metrics import (
    demographic_parity_ratio_gap,
    equal_opportunity_gap,
    predictive_equality_gap,
    predictive_parity_gap,
)

# counts
counts = {  # true positives, false negatives, false positives, true negatives
    "a": (300, 200, 75, 425),  # one half is positive
    "b": (120, 80, 30, 770),  # one fifth is positive
}
y = np.concatenate([np.repeat([1, 1, 0, 0], cells) for cells in counts.values()])
decision = np.concatenate([np.repeat([1, 0, 1, 0], cells) for cells in counts.values()])
group = np.repeat(list(counts), [sum(cells) for cells in counts.values()])
for metric in (equal_opportunity_gap, predictive_parity_gap, predictive_equality_gap, demographic_parity_ratio_gap):
    print(f"{metric.__name__:30s} {metric(y, decision, sensitive_features=group):.4f}")
# end of counts
assert np.isclose(equal_opportunity_gap(y, decision, sensitive_features=group), 0)
assert np.isclose(predictive_parity_gap(y, decision, sensitive_features=group), 0)
assert np.isclose(predictive_equality_gap(y, decision, sensitive_features=group), 0.15 - 0.0375)
assert np.isclose(demographic_parity_ratio_gap(y, decision, sensitive_features=group), 1 - 0.15 / 0.375)

# the identity
for share in (0.5, 0.2):
    print(share / (1 - share) * (1 - 0.8) / 0.8 * 0.6)  # the true positive rate is 0.6, the predictive value 0.8
# end of the identity
assert np.allclose([0.5 / 0.5 * 0.25 * 0.6, 0.2 / 0.8 * 0.25 * 0.6], [75 / 500, 30 / 800])
