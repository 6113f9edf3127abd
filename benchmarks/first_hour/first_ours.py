"""A first search with bequeath."""

import bequeath as bq


def trial(t: bq.StudyTrial) -> float:
    x = t.suggest_float("x", -10, 10)
    return (x - 2) ** 2


study = bq.Study(optimize="minimize").optimize(trial, n_trials=1)
print(study.best(), flush=True)
