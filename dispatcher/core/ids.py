"""Identifiers. One number names a request, its trial, and NNI's ``parameter_id``."""

from typing import NamedTuple

from trial_runtime.facts import TrialId as TrialId
from trial_runtime.facts import WorkerId as WorkerId


class AttemptId(NamedTuple):
    """The *n*-th try (from 1) to run a trial; printed as ``17.1``."""

    trial: TrialId
    number: int

    def __str__(self) -> str:
        return f"{self.trial}.{self.number}"
