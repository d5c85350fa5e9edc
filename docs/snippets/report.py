"""A report on held-out rows: tables, words and a page."""

from pathlib import Path

from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import FairnessReport, PartialParityClassifier, fairness_report
from fairconstrained.datasets import load_law_school

law = load_law_school()
rows = train_test_split(law.data, law.target, law.sensitive_features, test_size=0.3, random_state=0)
X, X_test, y, y_test, race, race_test = rows
scaler = StandardScaler().fit(X)

bottom = (0.7, 1.0)
model = PartialParityClassifier(kappa=0.5, interval=bottom)
model.fit(scaler.transform(X), y, sensitive_features=race)

# report
report = FairnessReport.from_estimator(
    make_pipeline(scaler, model),
    X_test,
    y_test,
    sensitive_features=race_test,
    interval=bottom,
    metrics=["independence_gap", "statistical_parity_gap", "partial_statistical_parity_gap"],
    title="Who passes the bar examination",
)
print(report)
report.to_html("report.html")
# end of the report

# tables
by_group = report.table[["n_samples", "base_rate", "positive_rate", "auc"]]
gap = report.gaps.loc["partial_statistical_parity_gap", ["value", "lower", "upper"]]
# end of the tables
assert by_group.loc["White", "n_samples"] + by_group.loc["Non-White", "n_samples"] == len(y_test)
assert gap["lower"] < gap["value"] < gap["upper"]

# scores
score = model.decision_function(scaler.transform(X_test))
same = fairness_report(y_test, score, sensitive_features=race_test, interval=bottom, n_resamples=0)
# end of the scores
assert same.table.equals(report.table)
assert same.gaps.loc["statistical_parity_gap", "value"] == report.gaps.loc["statistical_parity_gap", "value"]

page = Path("report.html").read_text(encoding="utf8")
assert "The price of fairness" in page
assert "http:" not in page
assert "https:" not in page
