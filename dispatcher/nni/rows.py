"""Trials, results and statuses of experiments, in layouts that scripts written for NNI read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dispatcher.folders.names import TRIALS
from dispatcher.terminal import formatting

if TYPE_CHECKING:
    from pathlib import Path

    from dispatcher.queries import MetricPoint, TrialSummary

_ENDS = {
    "succeeded": "SUCCEEDED",
    "failed": "FAILED",
    "timed out": "FAILED",
    "lost": "FAILED",
    "killed": "USER_CANCELED",
    "stopped early": "EARLY_STOPPED",
}


def status_word(trial: TrialSummary) -> str:
    """Return NNI's status of a trial; NNI has none for a trial that is not proposed yet."""
    if trial.outcome is not None:
        return _ENDS.get(trial.outcome, "UNKNOWN")
    return "RUNNING" if trial.state in ("running", "delivering") else "WAITING"


def is_job(trial: TrialSummary) -> bool:
    """Whether NNI would list a trial: it has parameters."""
    return trial.proposed_at is not None or trial.by_hand


def job(trial: TrialSummary, folder: Path) -> dict[str, Any]:
    """Return a trial as ``nnictl trial ls`` prints it: parameters and values are JSON texts."""
    ident = str(trial.id)
    document: dict[str, Any] = {
        "trialJobId": ident,
        "sequenceId": trial.id,
        "status": status_word(trial),
        "hyperParameters": [
            json.dumps(
                {
                    "parameter_id": trial.id,
                    "parameter_source": "customized" if trial.by_hand else "algorithm",
                    "parameters": trial.parameters,
                    "parameter_index": 0,
                }
            )
        ],
        "logPath": str(folder / TRIALS / ident),
    }
    if trial.started_at is not None:
        document["startTime"] = formatting.moment(trial.started_at)
    if trial.ended_at is not None:
        document["endTime"] = formatting.moment(trial.ended_at)
    if trial.result is not None:
        document["finalMetricData"] = [
            {
                "timestamp": int(1000 * (trial.ended_at or trial.since)),
                "trialJobId": ident,
                "parameterId": ident,
                "type": "FINAL",
                "sequence": 0,
                "data": json.dumps(json.dumps(trial.result)),
            }
        ]
    return document


def result(trial: TrialSummary) -> dict[str, Any]:
    """Return a trial as ``nnictl experiment export`` does since v1.5: its value is a JSON text."""
    return {
        "parameter": trial.parameters,
        "value": json.dumps(trial.result),
        "trialJobId": str(trial.id),
    }


def intermediates(trial: TrialSummary, points: Iterable[MetricPoint]) -> list[str]:
    """Return a trial's intermediate results in their order, as JSON texts.

    Only those of its last attempt: an earlier one that was stopped reported the same before.
    """
    own = [one for one in points if one.attempt == trial.attempt and not one.final]
    return [json.dumps(one.value) for one in own]


def table_row(trial: TrialSummary, reported: list[str] | None) -> dict[str, Any]:
    """Return a result as a row of a table: a value that is an object becomes columns."""
    row: dict[str, Any] = {}
    if reported is not None:
        row["intermediate"] = f"[{','.join(reported)}]"
    value = trial.result
    values = value if isinstance(value, dict) else {"reward": value}
    return row | trial.named_parameters | values | {"trialJobId": str(trial.id)}


_WORDS = {
    "created": "INITIALIZED",
    "running": "RUNNING",
    "stopped": "STOPPED",
    "interrupted": "STOPPED",
    "completed": "DONE",
    "failed": "ERROR",
}


def standing(folder: Path) -> tuple[str, list[str]]:
    """Return NNI's status of an experiment, and its errors."""
    from dispatcher import queries
    from dispatcher.experiments.why import asked

    with queries.ExperimentReader.open(folder) as reader:
        summary = queries.experiment_summary(reader)
    word = _WORDS[summary.status.value]
    if word == "RUNNING":
        snapshot = asked(folder)
        if snapshot is not None and snapshot["phase"] in ("draining", "stopping"):
            word = "STOPPING"
    return word, [summary.phase_reason] if word == "ERROR" and summary.phase_reason else []
