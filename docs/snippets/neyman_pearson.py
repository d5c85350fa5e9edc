"""NeymanPearsonClassifier: control of one error, bounds for many classes, and a picture of the prices."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import recall_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from fairconstrained import NeymanPearsonClassifier

# two classes
X, y = load_breast_cancer(return_X_y=True)  # 0: malignant, 1: benign
X = StandardScaler().fit_transform(X[:, :5])
model = NeymanPearsonClassifier({0: 0.02}, constraint="error", alpha=1e-3).fit(X, y)
print(model.status_)
print(model.class_table_)
# end of two classes
assert model.class_table_.error[0] <= 0.02 + 1 / np.sum(y == 0)
assert np.isclose(1 - recall_score(y, model.predict(X), pos_label=0), model.class_table_.error[0])

# ten classes
digits, numbers = load_digits(return_X_y=True)
parts = train_test_split(digits / 16, numbers, test_size=0.5, stratify=numbers, random_state=0)
bounded = NeymanPearsonClassifier(0.02, priority_class=8, constraint="error", alpha=1e-2).fit(parts[0], parts[2])
print(bounded.class_table_.round(3))
print("price of every bound:", bounded.multipliers_)
# end of ten classes
table = bounded.class_table_
assert (table.error <= 0.02 + 1 / table.n_samples)[table.index != 8].all()

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
bounds = [0.01, 0.02, 0.05, 0.1, 0.2]
fits = [NeymanPearsonClassifier({0: r}, constraint="error", alpha=1e-3).fit(X, y).class_table_ for r in bounds]
axes[0].plot(bounds, [t.error[0] for t in fits], "o-", label="malignant (bounded)")
axes[0].plot(bounds, [t.error[1] for t in fits], "s-", label="benign")
axes[0].axline((0.01, 0.01), slope=1, color="grey", linestyle=":", label="bound")
axes[0].set(xlabel="bound", ylabel="error rate, training rows", title="two classes")
axes[0].legend()
axes[1].bar(table.index, table.multiplier, color="#0072B2")
axes[1].set(xlabel="digit", ylabel="multiplier: price of its bound", title="ten classes, 8 without a bound")
axes[1].set_xticks(range(10))
figure.savefig("neyman_pearson.png", dpi=120)
