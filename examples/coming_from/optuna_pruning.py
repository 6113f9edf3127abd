"""Trials that report after each step, and an assessor that stops those below the median."""

from collections import Counter

from sklearn.datasets import load_iris
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

import bequeath as bq


def accuracy(t):
    data = load_iris(return_X_y=True)
    x, valid_x, y, valid_y = train_test_split(*data, random_state=0)
    model = SGDClassifier(alpha=t.suggest_float("alpha", 1e-5, 1e-1, log=True))
    for step in range(100):
        model.partial_fit(x, y, classes=[0, 1, 2])
        share = model.score(valid_x, valid_y)
        t.report(share, step)
        if t.should_stop():
            break
    return share


study = bq.Study(assessor="Medianstop")
study.optimize(accuracy, n_trials=30)
print(Counter(each.outcome for each in study.trials()))
print(study.best().value, study.best().parameters)
