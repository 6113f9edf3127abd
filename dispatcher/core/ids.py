"""Identifiers. One number names a request, its trial, and NNI's ``parameter_id``."""

from trial_runtime.facts import TrialId as TrialId
from trial_runtime.facts import WorkerId as WorkerId
