"""Optuna's first example, with the store that its documentation takes for searches to be kept."""

import optuna


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -10, 10)
    return (x - 2) ** 2


study = optuna.create_study(storage="sqlite:///first.db")
study.optimize(objective, n_trials=1)
print(study.best_params, flush=True)
