"""
A report for readers who do not train models
============================================

One page that compares the groups: in plain words, in tables with intervals, in figures, and with the trade-off from
which the model was chosen.

This example uses the law school data and the interval of
:ref:`sphx_glr_auto_examples_start_plot_partial_parity.py`: students in the bottom 30 % of the predicted scores are
offered support. A bound on these ranks costs accuracy; how much is acceptable is the decision of the school, so the
report is for people who do not train models.
"""

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from fairconstrained import FairnessReport, PartialParityClassifier, fairness_path
from fairconstrained.datasets import load_law_school
from fairconstrained.plotting import ParetoFrontDisplay, ScoreCurveDisplay

law = load_law_school()
rows = train_test_split(law.data, law.target, law.sensitive_features, test_size=0.25, random_state=0)
X, X_test, y, y_test, race, race_test = rows
scaler = StandardScaler().fit(X)
X, X_test = scaler.transform(X), scaler.transform(X_test)

# %%
# A path, and a model of it
# -------------------------
#
# The path fits one model for each bound, from loose to tight. The one with ``kappa=0.5`` is reported on.

bottom = (0.7, 1.0)
path = fairness_path(
    PartialParityClassifier(interval=bottom),
    X,
    y,
    sensitive_features=race,
    kappas=[None, 0.7, 0.5, 0.3, 0.1],
    scoring="roc_auc",
)
model = path.models[2]
print(path.table[["kappa", "gap", "price", "train_roc_auc"]].round(4).to_string(index=False))

# %%
# The report
# ----------
#
# It is measured on rows that were not used for fitting. A terminal shows the text and the tables:

report = FairnessReport.from_estimator(
    model,
    X_test,
    y_test,
    sensitive_features=race_test,
    interval=bottom,
    metrics=[
        "independence_gap",
        "equal_opportunity_gap",
        "statistical_parity_gap",
        "partial_statistical_parity_gap",
        "intra_group_auc_gap",
        "loss_parity_gap",
    ],
    path=path,
    title="Law school: who passes the bar examination",
)
print(report)

# %%
# A notebook shows the page, as does the gallery: the tables sort, and dark or light follows your system.
# ``report.to_html("report.html")`` writes it to a file that needs neither a network nor any other file.

report

# %%
# The same figures elsewhere
# --------------------------
#
# The displays take a report, for a figure in a paper or a slide.

figure, axes = plt.subplots(1, 2, figsize=(10.0, 5.0), layout="constrained")
figure.suptitle("Score curve of the chosen model, and the trade-off")
ScoreCurveDisplay.from_report(report, reference="White", ax=axes[0])
ParetoFrontDisplay.from_report(report, ax=axes[1])
plt.show()
