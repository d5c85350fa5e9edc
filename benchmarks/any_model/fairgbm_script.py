"""Fits FairGBM to the arrays of a file; run by the interpreter of another environment, without this package."""

import sys
import time
import warnings

import numpy as np


def main(given: str, answer: str, constraint: str) -> None:
    """Write the probabilities of training and new rows for every bound, and the seconds of the fits."""
    from fairgbm import FairGBMClassifier

    warnings.simplefilter("ignore")
    arrays = dict(np.load(given))
    answers = {"test": [], "train": [], "seconds": []}
    for kappa in arrays["kappas"]:
        begin = time.process_time()
        model = FairGBMClassifier(
            n_estimators=300,
            learning_rate=0.05,
            constraint_type=constraint,
            constraint_fnr_tolerance=float(kappa),
            constraint_fpr_tolerance=float(kappa),
            n_jobs=1,
            random_state=0,
            verbose=-1,
        )
        columns = [int(place) for place in arrays["categories"]]
        model.fit(arrays["train"], arrays["y"], constraint_group=arrays["groups"], categorical_feature=columns)
        answers["seconds"].append(time.process_time() - begin)
        for name in ("test", "train"):
            answers[name].append(model.predict_proba(arrays[name])[:, -1])
    np.savez(answer, **{name: np.array(values) for name, values in answers.items()})


if __name__ == "__main__":
    main(*sys.argv[1:])
