"""For Optuna: trials that report after each step, and a pruner that stops those below a median."""

from collections import Counter

import optuna
from sklearn.datasets import load_iris
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split


def accuracy(trial):
    data = load_iris(return_X_y=True)
    x, valid_x, y, valid_y = train_test_split(*data, random_state=0)
    model = SGDClassifier(alpha=trial.suggest_float("alpha", 1e-5, 1e-1, log=True))
    for step in range(100):
        model.partial_fit(x, y, classes=[0, 1, 2])
        share = model.score(valid_x, valid_y)
        trial.report(share, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return share


study = optuna.create_study(direction="maximize", pruner=optuna.pruners.MedianPruner())
study.optimize(accuracy, n_trials=30)
print(Counter(each.state.name for each in study.trials))
print(study.best_value, study.best_params)
