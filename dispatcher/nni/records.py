"""``nni.experiment.data``: trials and results as a script reads them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dispatcher.folders.names import TRIALS

if TYPE_CHECKING:
    from pathlib import Path

    from dispatcher.queries import TrialSummary

_ENDS = {
    "succeeded": "SUCCEEDED",
    "failed": "FAILED",
    "timed out": "FAILED",
    "lost": "FAILED",
    "killed": "USER_CANCELED",
    "stopped early": "EARLY_STOPPED",
}


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


def status_word(trial: TrialSummary) -> str:
    """Return NNI's status of a trial; NNI has none for a trial that is not proposed yet."""
    if trial.outcome is not None:
        return _ENDS.get(trial.outcome, "UNKNOWN")
    return "RUNNING" if trial.state in ("running", "delivering") else "WAITING"


def job_of(trial: TrialSummary, folder: Path) -> TrialJob:
    """Return the record of a trial of an experiment's folder."""
    ident = str(trial.id)
    ended = None if trial.ended_at is None else int(1000 * trial.ended_at)
    metrics = []
    if trial.result is not None:
        at = int(1000 * trial.since) if ended is None else ended
        metrics.append(TrialMetricData(at, ident, trial.id, "FINAL", 0, trial.result))
    source = "customized" if trial.by_hand else "algorithm"
    return TrialJob(
        trialJobId=ident,
        status=status_word(trial),
        hyperParameters=[TrialHyperParameters(trial.id, source, trial.parameters, 0)],
        logPath=str(folder / TRIALS / ident),
        startTime=None if trial.started_at is None else int(1000 * trial.started_at),
        endTime=ended,
        finalMetricData=metrics,
        sequenceId=trial.id,
    )
