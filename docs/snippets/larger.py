import tempfile
from pathlib import Path

import numpy as np

from fairconstrained import PartialParityClassifier
from fairconstrained.callbacks import resumable
from fairconstrained.datasets import make_biased_classification
from fairconstrained.tables import array_table, torch_table

X, y, groups = make_biased_classification(2000, n_features=10, random_state=0)
folder = tempfile.TemporaryDirectory()
np.save(Path(folder.name) / "features.npy", X.astype(np.float32))

on_disk = np.load(Path(folder.name) / "features.npy", mmap_mode="r")
model = PartialParityClassifier(kappa=0.05, constraint="demographic_parity", random_state=0)
model.fit(array_table(on_disk), y, sensitive_features=groups)
print(model.status_, model.constraint_values_)
# end of the page

# cut off
with resumable(Path(folder.name) / "fit.checkpoint"):
    model.fit(array_table(on_disk), y, sensitive_features=groups)
# end of cut off
in_files = model.coef_.copy()

# on a device
model.fit(torch_table(X.astype(np.float32)), y, sensitive_features=groups)
# end of on a device
on_device = model.coef_.copy()
assert not (Path(folder.name) / "fit.checkpoint").exists()
assert model.constraint_values_["demographic_parity"] <= 0.05 + model.granularity_["demographic_parity"]
model.fit(X.astype(np.float32), y, sensitive_features=groups)
np.testing.assert_allclose(model.coef_, in_files, rtol=1e-6)
np.testing.assert_allclose(model.coef_, on_device, rtol=1e-6)
del on_disk, model
folder.cleanup()
