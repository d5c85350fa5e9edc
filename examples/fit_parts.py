"""A fit to people.parquet files, one for each process: ``torchrun --nproc-per-node 2 examples/fit_parts.py FOLDER``."""

import sys
from pathlib import Path

import pandas as pd
import torch.distributed as dist

from fairconstrained import PartialParityClassifier
from fairconstrained.callbacks import resumable
from fairconstrained.distributed import fit

dist.init_process_group("gloo")
folder = Path(sys.argv[1])
people = pd.read_parquet(folder / f"part-{dist.get_rank()}.parquet")

model = PartialParityClassifier(0.05, constraint="demographic_parity", random_state=0)
X = people.drop(columns=["label", "group"])
with resumable(folder / "checkpoint"):
    model = fit(model, X, people["label"], sensitive_features=people["group"])

if dist.get_rank() == 0:
    print(model.status_, model.constraint_values_)
    pd.to_pickle(model, folder / "model.pickle")
dist.destroy_process_group()
