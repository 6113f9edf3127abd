"""A parabola with a step: some trials, some more, and then half a second of them."""

import time

import bequeath as bq


def trial(t):
    x = t.suggest_float("x", -100, 100)
    return x**2 + t.suggest_categorical("y", [-1, 0, 1])


study = bq.Study(optimize="minimize")
study.optimize(trial, n_trials=10)
print("10 trials:", study.best().value, study.best().parameters)
study.optimize(trial, n_trials=20)
print("30 trials:", study.best().value, study.best().parameters)
end = time.monotonic() + 0.5
while time.monotonic() < end:
    study.optimize(trial, n_trials=1)
print(f"{len(study.trials())} trials:", study.best().value, study.best().parameters)
