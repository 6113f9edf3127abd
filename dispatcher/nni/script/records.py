"""``nni.experiment.data``: trials and results as a script reads them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass
class TrialResult:
    """A trial that is over: its parameters and its final result."""

    parameter: Any
    value: Any
    trialJobId: str  # noqa: N815 - NNI's names here and below


@dataclass
class TrialMetricData:
    """One metric; ``type`` is ``PERIODICAL`` or ``FINAL``."""

    timestamp: int
    trialJobId: str  # noqa: N815
    parameterId: int  # noqa: N815
    type: str
    sequence: int
    data: Any


@dataclass
class TrialHyperParameters:
    """The parameters of a trial."""

    parameter_id: int
    parameter_source: str
    parameters: Any
    parameter_index: int


@dataclass
class TrialJob:
    """A trial as NNI's record; times are milliseconds since the epoch."""

    trialJobId: str  # noqa: N815
    status: str
    hyperParameters: list[TrialHyperParameters]  # noqa: N815
    logPath: str  # noqa: N815
    startTime: int | None = None  # noqa: N815
    endTime: int | None = None  # noqa: N815
    finalMetricData: list[TrialMetricData] = field(default_factory=list)  # noqa: N815
    stderrPath: str = ""  # noqa: N815
    sequenceId: int = 0  # noqa: N815


def job_of(row: dict[str, Any], started: float | None, ended: float | None) -> TrialJob:
    """Return the record of a row of ``bequeath nni trial ls``.

    Args:
        row: its parameters and values are JSON texts.
        started: seconds since the epoch; None if it has not.
        ended: seconds since the epoch; None if it has not.
    """
    metrics = [
        TrialMetricData(
            one["timestamp"],
            one["trialJobId"],
            int(one["parameterId"]),
            one["type"],
            one["sequence"],
            json.loads(json.loads(one["data"])),
        )
        for one in row.get("finalMetricData", ())
    ]
    return TrialJob(
        trialJobId=row["trialJobId"],
        status=row["status"],
        hyperParameters=[TrialHyperParameters(**json.loads(x)) for x in row["hyperParameters"]],
        logPath=row["logPath"],
        startTime=None if started is None else int(1000 * started),
        endTime=None if ended is None else int(1000 * ended),
        finalMetricData=metrics,
        sequenceId=row["sequenceId"],
    )
