"""Scores by a torch module: a perceptron, a class of one's own, a trained instance, an output for each group."""

import sklearn
import torch
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import LossParityClassifier, PartialParityClassifier
from fairconstrained.datasets import make_biased_classification

sklearn.set_config(enable_metadata_routing=True)
X, y, group = make_biased_classification(500, 5, random_state=0)

# a perceptron
model = make_pipeline(
    StandardScaler(),
    PartialParityClassifier(
        kappa=0.1, constraint="demographic_parity", hidden_layer_sizes=(8,), activation="tanh", random_state=0
    ),
)
model.fit(X, y, sensitive_features=group)
print(model[-1].status_, model[-1].constraint_values_, model[-1].module_)
# end of the perceptron
assert model[-1].status_ == "optimal"


# a class
class Residual(torch.nn.Module):
    """A linear score plus a correction."""

    output_bias_name = "linear.bias"

    def __init__(self, n_features, n_outputs):
        super().__init__()
        self.linear = torch.nn.Linear(n_features, n_outputs)
        self.correction = torch.nn.Sequential(
            torch.nn.Linear(n_features, 4), torch.nn.Tanh(), torch.nn.Linear(4, n_outputs, bias=False)
        )

    def forward(self, rows):
        return self.correction(rows) + self.linear(rows)


own = PartialParityClassifier(kappa=0.1, constraint="demographic_parity", module=Residual, random_state=0)
own.fit(X, y, sensitive_features=group)
# end of the class
assert own.status_ == "optimal"

# an instance
trained = own.module_
looser = PartialParityClassifier(kappa=0.15, constraint="demographic_parity", module=trained)
looser.fit(X, y, sensitive_features=group)
# end of the instance
assert looser.constraint_values_["demographic_parity"] <= 0.15 + 0.01
assert looser.module_ is not trained

# pictures
pictures = X[:, [0, 1, 2, 3, 4, 0, 1, 2, 3]].reshape(-1, 1, 3, 3)


def convolutional(row_shape, n_outputs):
    channels, height, width = row_shape
    return torch.nn.Sequential(
        torch.nn.Conv2d(channels, 8, 2),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Dropout(0.2),
        torch.nn.Linear(8 * (height - 1) * (width - 1), n_outputs),
    )


seeing = LossParityClassifier(kappa=0.02, module=convolutional, max_epochs=5, random_state=0)
seeing.fit(pictures, y, sensitive_features=group)
# end of pictures
assert seeing.constraint_values_["loss_parity"] <= 0.02 + 1e-6
assert not seeing.module_.training
assert (seeing.module_[1].running_mean != 0).all()

# an output for each group
heads = PartialParityClassifier(
    kappa=0.1, constraint="demographic_parity", module=Residual, group_interactions=True, random_state=0
)
heads.fit(X, y, sensitive_features=group)
scores = heads.decision_function(X, sensitive_features=group)
# end of the outputs
with torch.no_grad():
    outputs = heads.module_(torch.from_numpy(X)).numpy()
assert outputs.shape == (500, 2)
assert (scores == outputs[range(500), group]).all()

# mini-batches
stochastic = PartialParityClassifier(
    kappa=0.1,
    constraint="demographic_parity",
    hidden_layer_sizes=(8,),
    solver="stochastic_idca",
    max_iter=2,
    solver_options={"max_inner": 50, "batch_size": 128, "proximity": 1.0},
    surrogate_width=0.5,
    random_state=0,
)
# end of the mini-batches
with sklearn.config_context(enable_metadata_routing=False):
    import warnings

    warnings.simplefilter("ignore")  # the gap may exceed kappa after so few steps
    stochastic.fit(X, y, sensitive_features=group)
assert len(stochastic.history_) == 2
