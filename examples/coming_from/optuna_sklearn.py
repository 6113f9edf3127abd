"""Which classifier, and with which parameters: those of a classifier exist for it alone."""

from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

import bequeath as bq


def accuracy(t):
    if t.suggest_categorical("classifier", ["svm", "forest"]) == "svm":
        model = SVC(C=t.suggest_float("c", 1e-10, 1e10, log=True))
    else:
        depth = t.suggest_int("depth", 2, 32, log=True)
        model = RandomForestClassifier(n_estimators=10, max_depth=depth)
    return cross_val_score(model, *load_iris(return_X_y=True), cv=3).mean()


study = bq.Study()
study.optimize(accuracy, n_trials=30)
print(study.best().value, study.best().parameters)
