"""Writes the made-up search into Optuna's storage: ``optuna_study.py FILE TRIALS METRICS``.

Optuna adds trials by a statement and a look for each intermediate value, of which there are a
million. So its own tables are filled with many rows at once, and the study is then read by Optuna
itself, whose trials must be those that were written.
"""

from __future__ import annotations

import datetime
import json
import sys
from importlib.metadata import version
from typing import Any

import optuna
import sqlalchemy
from made_trials import OPERATIONS, OPTIMIZERS, WIDTHS, MadeTrial, made_trials
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)
from optuna.storages._rdb import models

#: Trials in one transaction.
AT_ONCE = 500

SPACE: dict[str, Any] = {
    "lr": FloatDistribution(1e-4, 0.1, log=True),
    "dropout": FloatDistribution(0.0, 0.5),
    "width": CategoricalDistribution(WIDTHS),
    "depth": IntDistribution(2, 9),
    "optimizer": CategoricalDistribution(OPTIMIZERS),
    **{f"op{block}": CategoricalDistribution(OPERATIONS) for block in range(4)},
}


def rows_of(one: MadeTrial, study: int) -> dict[Any, list[dict[str, Any]]]:
    """The rows of a trial, by table."""
    number = one.number + 1
    began, ended = (
        datetime.datetime.fromtimestamp(at, datetime.UTC).replace(tzinfo=None)
        for at in (one.began, one.ended)
    )
    finite_value = models.TrialValueModel.TrialValueType.FINITE
    finite = models.TrialIntermediateValueModel.TrialIntermediateValueType.FINITE
    return {
        models.TrialModel: [
            {"trial_id": number, "number": one.number, "study_id": study,
             "state": optuna.trial.TrialState.COMPLETE,
             "datetime_start": began, "datetime_complete": ended}
        ],
        models.TrialParamModel: [
            {"trial_id": number, "param_name": name,
             "param_value": SPACE[name].to_internal_repr(value),
             "distribution_json": distribution_to_json(SPACE[name])}
            for name, value in one.parameters.items()
        ],
        models.TrialValueModel: [
            {"trial_id": number, "objective": 0, "value": one.value, "value_type": finite_value}
        ],
        models.TrialIntermediateValueModel: [
            {"trial_id": number, "step": step, "intermediate_value": value,
             "intermediate_value_type": finite}
            for step, value in enumerate(one.curve)
        ],
    }  # fmt: skip


def write(engine: Any, study: int, trials: list[MadeTrial]) -> None:
    """Write some trials."""
    tables: dict[Any, list[dict[str, Any]]] = {}
    for one in trials:
        for model, rows in rows_of(one, study).items():
            tables.setdefault(model, []).extend(rows)
    with engine.begin() as connection:
        for model, rows in tables.items():
            connection.execute(sqlalchemy.insert(model.__table__), rows)


def main() -> None:
    """Write it, look at it, and say what it is."""
    path, trials, metrics = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = f"sqlite:///{path}"
    study = optuna.create_study(storage=storage, study_name="digits", direction="maximize")
    engine = sqlalchemy.create_engine(storage)
    some: list[MadeTrial] = []
    for one in made_trials(trials, metrics):
        some.append(one)
        if len(some) == AT_ONCE or one.number == trials - 1:
            write(engine, study._study_id, some)
            some = []
    engine.dispose()
    read = optuna.load_study(storage=storage, study_name="digits").trials
    assert len(read) == trials
    for one, theirs in zip(made_trials(trials, metrics), read, strict=True):
        assert theirs.params == one.parameters, (theirs, one)
        assert theirs.value == one.value
        assert list(theirs.intermediate_values.values()) == one.curve
    print(json.dumps({name: version(name) for name in ("optuna", "optuna-dashboard")}), flush=True)


if __name__ == "__main__":
    main()
