"""Trials, results and statuses of experiments, in layouts that scripts written for NNI read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from dispatcher.nni.records import TrialMetricData, job_of
from dispatcher.terminal import formatting

if TYPE_CHECKING:
    from pathlib import Path

    from dispatcher.experiments.handle import ExperimentHandle
    from dispatcher.experiments.standing import Standing
    from dispatcher.queries import MetricPoint, TrialSummary


def is_job(trial: TrialSummary) -> bool:
    """Whether NNI would list a trial: it has parameters."""
    return trial.proposed_at is not None or trial.by_hand


def job_record(trial: TrialSummary, folder: Path) -> dict[str, Any]:
    """Return a trial as NNI's REST answers it: parameters and values are JSON texts, times are
    milliseconds since the epoch. One that has not begun has the time since which it waits."""
    record = job_of(trial, folder)
    began = trial.started_at or trial.proposed_at or trial.since
    document: dict[str, Any] = {
        "trialJobId": record.trialJobId,
        "sequenceId": record.sequenceId,
        "status": record.status,
        "hyperParameters": [json.dumps(asdict(one)) for one in record.hyperParameters],
        "logPath": record.logPath,
        "startTime": int(1000 * began),
    }
    if record.endTime is not None:
        document["endTime"] = record.endTime
    if record.status == "FAILED":
        document["stderrPath"] = f"{record.logPath}/stderr"
        document["message"] = trial.error or trial.end_reason or "--"
    if record.finalMetricData:
        document["finalMetricData"] = [metric_record(one) for one in record.finalMetricData]
    return document


def job(trial: TrialSummary, folder: Path) -> dict[str, Any]:
    """Return a trial as ``nnictl trial ls`` prints it: the same, with times as texts."""
    document = job_record(trial, folder)
    for name in ("startTime", "endTime", "stderrPath", "message"):
        document.pop(name, None)
    final = document.pop("finalMetricData", None)
    if trial.started_at is not None:
        document["startTime"] = formatting.moment(trial.started_at)
    if trial.ended_at is not None:
        document["endTime"] = formatting.moment(trial.ended_at)
    if final is not None:
        document["finalMetricData"] = final
    return document


def metric_record(metric: TrialMetricData) -> dict[str, Any]:
    """Return a metric as NNI's REST answers it: its value is the JSON text of a JSON text."""
    texts = {"parameterId": metric.trialJobId, "data": json.dumps(json.dumps(metric.data))}
    return asdict(metric) | texts


def periodical(trial: int, sequence: int, point: MetricPoint) -> dict[str, Any]:
    """Return an intermediate metric as NNI's REST answers it.

    Args:
        trial: its number.
        sequence: how many its attempt had reported before.
        point: the metric.
    """
    at = int(1000 * point.at)
    metric = TrialMetricData(at, str(trial), trial, "PERIODICAL", sequence, point.value)
    return metric_record(metric)


def is_result(trial: TrialSummary) -> bool:
    """Whether NNI would export a trial: it is over, well, and has a result."""
    return (
        trial.over and trial.result is not None and trial.outcome in ("succeeded", "stopped early")
    )


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


#: NNI's words for the state of an experiment.
WORDS: Final = {
    "created": "INITIALIZED",
    "running": "RUNNING",
    "stopped": "STOPPED",
    "interrupted": "STOPPED",
    "completed": "DONE",
    "failed": "ERROR",
}


def standing(handle: ExperimentHandle) -> tuple[str, list[str]]:
    """Return NNI's status of an experiment, and its errors."""
    return standing_of(handle.standing())


def standing_of(seen: Standing) -> tuple[str, list[str]]:
    """Return NNI's status of an experiment that somebody has looked at, and its errors."""
    summary = seen.experiment
    word = WORDS[summary.status.value]
    if seen.head is not None and seen.head.phase in ("draining", "stopping"):
        word = "STOPPING"
    return word, [summary.phase_reason] if word == "ERROR" and summary.phase_reason else []
