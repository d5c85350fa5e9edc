"""Training of LossParityClassifier: a published solver, callbacks, checkpoints, early stopping, a stream, a module."""

import warnings

import numpy as np
import torch

from fairconstrained import LossParityClassifier
from fairconstrained.callbacks import Checkpoint, HistoryCSV, StopTraining
from fairconstrained.datasets import make_biased_classification
from fairconstrained.exceptions import ConvergenceWarning
from fairconstrained.metrics import loss_parity_gap

X, y, group = make_biased_classification(1500, random_state=0)
options = {"kappa": 0.01, "hidden_layer_sizes": (8,), "random_state": 0}

# a published solver
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    published = LossParityClassifier(solver="ssl_alm", batch_size=8, max_epochs=5, **options)
    published.fit(X, y, sensitive_features=group)
print(published.status_, published.constraint_values_)
# end of the published solver
exceeds = published.constraint_values_["loss_parity"] > 0.01
assert published.status_ == ("infeasible" if exceeds else "completed")
assert [warning.category for warning in caught] == [ConvergenceWarning] * exceeds


# callbacks
def good_enough(record):
    """End training at the first epoch within the bound whose objective is below 0.5."""
    if record["objective"] < 0.5 and record["loss_parity"] <= 0.01:
        raise StopTraining


watched = LossParityClassifier(callbacks=[HistoryCSV("history.csv"), good_enough], **options)
watched.fit(X, y, sensitive_features=group)
print(watched.n_iter_, "epochs", watched.constraint_values_)
# end of callbacks
assert watched.n_iter_ < 80
assert watched.status_ == "completed"


# a checkpoint
def cut_off(record):
    """Stop training as a power failure would."""
    if record["n_iter"] == 12:
        raise KeyboardInterrupt


def model(*others):
    """Each time with the same parameters."""
    return LossParityClassifier(max_epochs=20, callbacks=[Checkpoint("training.pkl"), *others], **options)


try:
    model(cut_off).fit(X, y, sensitive_features=group)
except KeyboardInterrupt:
    resumed = model().fit(X, y, sensitive_features=group)  # epochs 13 to 20
uninterrupted = LossParityClassifier(max_epochs=20, **options).fit(X, y, sensitive_features=group)
print(abs(resumed.decision_function(X) - uninterrupted.decision_function(X)).max())
# end of the checkpoint
assert np.array_equal(resumed.decision_function(X), uninterrupted.decision_function(X))

# early stopping
early = LossParityClassifier(early_stopping=True, max_epochs=500, **options).fit(X, y, sensitive_features=group)
print(early.n_iter_, "epochs", early.constraint_values_)
# end of early stopping
assert early.n_iter_ < 500
assert early.status_ == "completed"

# a stream
stream = LossParityClassifier(**options)
for rows in np.array_split(np.arange(len(y)), 5):
    stream.partial_fit(X[rows], y[rows], classes=[0, 1], sensitive_features=group[rows], groups=[0, 1])
print(stream.n_iter_, stream.constraint_values_)
# end of the stream
assert stream.n_iter_ == 5
rows = np.array_split(np.arange(len(y)), 5)[-1]
last = loss_parity_gap(y[rows], stream.decision_function(X[rows]), sensitive_features=group[rows])
assert np.isclose(last, stream.constraint_values_["loss_parity"])


# a module
class Normalised(torch.nn.Module):
    """Layer normalisation, and a linear layer at the end."""

    def __init__(self, n_features, n_outputs):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(n_features, 8), torch.nn.LayerNorm(8), torch.nn.SiLU())
        self.output = torch.nn.Linear(8, n_outputs)

    def forward(self, rows):
        return self.output(self.body(rows))


own = LossParityClassifier(kappa=0.01, module=Normalised, device="cpu", max_epochs=20, random_state=0)
own.fit(X, y, sensitive_features=group)
print(own.status_, own.constraint_values_, own.module_)
# end of the module
assert own.status_ == "completed"
