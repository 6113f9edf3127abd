"""Trials, results and statuses of experiments, in layouts that scripts written for NNI read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dispatcher.nni.records import job_of
from dispatcher.terminal import formatting

if TYPE_CHECKING:
    from pathlib import Path

    from dispatcher.experiments.handle import ExperimentHandle
    from dispatcher.queries import MetricPoint, TrialSummary


def is_job(trial: TrialSummary) -> bool:
    """Whether NNI would list a trial: it has parameters."""
    return trial.proposed_at is not None or trial.by_hand


def job(trial: TrialSummary, folder: Path) -> dict[str, Any]:
    """Return a trial as ``nnictl trial ls`` prints it: parameters and values are JSON texts."""
    record = job_of(trial, folder)
    document: dict[str, Any] = {
        "trialJobId": record.trialJobId,
        "sequenceId": record.sequenceId,
        "status": record.status,
        "hyperParameters": [json.dumps(asdict(one)) for one in record.hyperParameters],
        "logPath": record.logPath,
    }
    if trial.started_at is not None:
        document["startTime"] = formatting.moment(trial.started_at)
    if trial.ended_at is not None:
        document["endTime"] = formatting.moment(trial.ended_at)
    if record.finalMetricData:
        (final,) = record.finalMetricData
        texts = {"parameterId": record.trialJobId, "data": json.dumps(json.dumps(final.data))}
        document["finalMetricData"] = [asdict(final) | texts]
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


def standing(handle: ExperimentHandle) -> tuple[str, list[str]]:
    """Return NNI's status of an experiment, and its errors."""
    seen = handle.standing()
    summary = seen.experiment
    word = _WORDS[summary.status.value]
    if seen.head is not None and seen.head.phase in ("draining", "stopping"):
        word = "STOPPING"
    return word, [summary.phase_reason] if word == "ERROR" and summary.phase_reason else []
